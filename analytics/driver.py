"""Finds PostgreSQL's JDBC driver."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from analytics.errors import DriverMissing

VARIABLE = "MQBROKER_JDBC_JAR"
CLASS = "org.postgresql.Driver"
COORDINATES = "org.postgresql:postgresql:42.7.13"
# Where Debian, Fedora and Arch put it.
SYSTEM_JARS = (
    Path("/usr/share/java/postgresql.jar"),
    Path("/usr/share/java/postgresql-jdbc/postgresql.jar"),
    Path("/usr/share/java/postgresql-jdbc.jar"),
)
THREE_WAYS = (
    f"set {VARIABLE} to the driver's jar, install the system package (Debian: libpostgresql-jdbc-java), or let Spark "
    f"fetch {COORDINATES} from a Maven repository that this machine reaches"
)


@dataclass(frozen=True, slots=True)
class Driver:
    """Where Spark takes the driver from: a jar on this machine, or Maven coordinates."""

    jar: Path | None

    def settings(self) -> dict[str, str]:
        """Spark's settings for it."""
        if self.jar is not None:
            return {"spark.jars": str(self.jar)}
        # Its one dependency is annotations for compilers.
        return {"spark.jars.packages": COORDINATES, "spark.jars.excludes": "org.checkerframework:checker-qual"}


def find(named: str, system_jars: Iterable[Path] = SYSTEM_JARS) -> Driver:
    """The jar that is `named` by MQBROKER_JDBC_JAR, else the system's, else Maven coordinates.

    Raises DriverMissing when that is no file.
    """
    if named:
        if not Path(named).is_file():
            raise DriverMissing(f"{VARIABLE} names {named}, which is no file: {THREE_WAYS}.")
        return Driver(Path(named).resolve())
    return Driver(next((jar for jar in system_jars if jar.is_file()), None))
