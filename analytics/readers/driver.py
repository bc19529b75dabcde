"""Finds PostgreSQL's JDBC driver, or downloads it with Ivy."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pyspark

from analytics.errors import DriverMissing
from analytics.java import Java

VARIABLE = "MQBROKER_JDBC_JAR"
CLASS = "org.postgresql.Driver"
COORDINATES = "org.postgresql:postgresql:42.7.13"
# The paths of the packages of Debian, Fedora and Arch.
SYSTEM_JARS = (
    Path("/usr/share/java/postgresql.jar"),
    Path("/usr/share/java/postgresql-jdbc/postgresql.jar"),
    Path("/usr/share/java/postgresql-jdbc.jar"),
)
THREE_WAYS = (
    f"set {VARIABLE} to the driver's jar, install the system package (Debian: libpostgresql-jdbc-java), or let Ivy "
    f"fetch {COORDINATES} from a Maven repository that this machine reaches"
)
IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")
FETCH_SECONDS = 120


def find(named: str, system_jars: Iterable[Path] = SYSTEM_JARS) -> Path | None:
    """The jar that MQBROKER_JDBC_JAR names, else the jar that the system installed; None if the driver must be
    downloaded.

    Raises DriverMissing if the named jar is not a file.
    """
    if named:
        if not Path(named).is_file():
            raise DriverMissing(f"{VARIABLE} names {named}, which is no file: {THREE_WAYS}.")
        return Path(named).resolve()
    return next((jar for jar in system_jars if jar.is_file()), None)


def fetch(runtime: Java, folder: Path, coordinates: str = COORDINATES) -> Path:
    """Downloads the jar into `folder` with the Ivy that Spark contains: from Maven's cache, else Maven Central.

    Spark could do the same by `spark.jars.packages`, but would print each step between the lines of the export. Raises
    DriverMissing with Ivy's reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    [ivy] = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    java = [str(runtime.executable), f"-Duser.home={Path.home()}", "-cp", str(ivy), "org.apache.ivy.Main"]
    # The driver's only dependency is annotations for compilers. The pattern must be relative: in an absolute path Ivy
    # would interpret brackets.
    wanted = ["-dependency", *coordinates.split(":"), "-notransitive", "-types", "jar"]
    retrieve = ["-retrieve", "[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(
            [*java, "-settings", str(IVY_SETTINGS), "-warn", *wanted, *retrieve],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=FETCH_SECONDS,
        )
        reason = "" if done.returncode == 0 else _reason(done.stdout + done.stderr)
    except subprocess.TimeoutExpired:
        reason = f"no end after {FETCH_SECONDS} s"
    jar = next(folder.glob("*.jar"), None)
    if reason or jar is None:
        raise DriverMissing(f"There is no JDBC driver for PostgreSQL, and Ivy fetched none ({reason}): {THREE_WAYS}.")
    return jar


def _reason(printed: str) -> str:
    """The first problem in Ivy's output, which lists problems indented below a headline."""
    lines = [line.strip() for line in printed.splitlines() if line.startswith("\t") and line.strip()]
    return lines[0] if lines else printed.strip()[-200:]
