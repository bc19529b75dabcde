"""The JDBC driver: three ways to it, and a sentence that names them."""

from pathlib import Path

import pytest

from analytics import driver
from analytics.driver import Driver
from analytics.errors import DriverMissing


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """A jar that somebody put somewhere."""
    path = tmp_path / "postgresql.jar"
    path.touch()
    return path


def test_the_jar_of_the_variable_comes_first(jar: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jar"
    other.touch()

    assert driver.find(str(other), [jar]) == Driver(other)


def test_the_systems_jar_comes_second(jar: Path, tmp_path: Path) -> None:
    found = driver.find("", [tmp_path / "none.jar", jar])

    assert found == Driver(jar)
    assert found.settings() == {"spark.jars": str(jar)}


def test_maven_comes_last() -> None:
    assert driver.find("", []).settings()["spark.jars.packages"].startswith("org.postgresql:postgresql:42.")


def test_a_variable_that_names_no_file_is_refused_with_the_three_ways(jar: Path) -> None:
    with pytest.raises(DriverMissing) as refused:
        driver.find("/none.jar", [jar])

    assert refused.value.code == "driver_missing"
    assert str(refused.value) == (
        "MQBROKER_JDBC_JAR names /none.jar, which is no file: set MQBROKER_JDBC_JAR to the driver's jar, install the "
        "system package (Debian: libpostgresql-jdbc-java), or let Spark fetch org.postgresql:postgresql:42.7.13 from a "
        "Maven repository that this machine reaches."
    )
