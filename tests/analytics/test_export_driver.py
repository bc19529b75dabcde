"""The JDBC driver: three ways to it, and a sentence that names them."""

from pathlib import Path

import pytest

from analytics import java
from analytics.errors import DriverMissing
from analytics.readers import driver


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """A jar in a folder."""
    path = tmp_path / "postgresql.jar"
    path.touch()
    return path


def test_the_jar_of_the_variable_comes_first(jar: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jar"
    other.touch()

    assert driver.find(str(other), [jar]) == other


def test_the_systems_jar_comes_second(jar: Path, tmp_path: Path) -> None:
    assert driver.find("", [tmp_path / "none.jar", jar]) == jar


def test_what_maven_kept_comes_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    group, artifact, version = driver.COORDINATES.split(":")
    kept = tmp_path / ".m2" / "repository" / group.replace(".", "/") / artifact / version
    kept.mkdir(parents=True)
    (kept / f"{artifact}-{version}.jar").write_bytes(b"the driver")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert driver.find("", []) is None

    fetched = driver.fetch(java.find(java.candidates({})), tmp_path / "a [folder]")

    assert fetched.read_bytes() == b"the driver"


def test_a_driver_that_cannot_be_fetched_is_refused_with_the_three_ways(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(DriverMissing) as refused:
        driver.fetch(java.find(java.candidates({})), tmp_path / "driver", "org.postgresql:postgresql:0.0.none")

    assert str(refused.value).startswith("There is no JDBC driver for PostgreSQL, and Ivy fetched none (")
    assert str(refused.value).endswith(f"): {driver.THREE_WAYS}.")
    assert len(str(refused.value).splitlines()) == 1


def test_a_variable_that_names_no_file_is_refused_with_the_three_ways(jar: Path) -> None:
    with pytest.raises(DriverMissing) as refused:
        driver.find("/none.jar", [jar])

    assert refused.value.code == "driver_missing"
    assert str(refused.value) == (
        "MQBROKER_JDBC_JAR names /none.jar, which is no file: set MQBROKER_JDBC_JAR to the driver's jar, install the "
        "system package (Debian: libpostgresql-jdbc-java), or let Ivy fetch org.postgresql:postgresql:42.7.13 from a "
        "Maven repository that this machine reaches."
    )
