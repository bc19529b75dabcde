"""Java keeps the classes of Spark, starts with them, and starts without a word where they are no longer its own."""

import subprocess
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from analytics import java
from analytics.java import BUNDLED_JAVA, Java, version_of


def options(runtime: Java) -> list[str]:
    """As Spark's scripts give them to Java."""
    return java.class_options(runtime).replace('"', "").split()


@pytest.mark.skipif(not java.CLASSES.exists(), reason="Java has kept no classes in this environment")
def test_a_session_of_spark_starts_with_the_classes_that_were_kept(spark: SparkSession, runtime: Java) -> None:
    programs = [child for child in psutil.Process().children(recursive=True) if "java" in child.name()]

    used = {mapped.path for program in programs for mapped in program.memory_maps()}

    assert str(java.archive(runtime)) in used


@pytest.mark.parametrize("kept", [b"", b"no archive", b"\xf0\x0b\xab\xa2" * 10_000])
def test_java_says_nothing_of_an_archive_that_it_cannot_use(
    monkeypatch: pytest.MonkeyPatch, runtime: Java, tmp_path: Path, kept: bytes
) -> None:
    monkeypatch.setattr(java, "CLASSES", tmp_path)
    bundled = Java(BUNDLED_JAVA, version_of(BUNDLED_JAVA) or 0)
    for found in (runtime, bundled):
        java.archive(found).write_bytes(kept)

        started = subprocess.run([found.executable, *options(found), "--version"], capture_output=True, text=True)

        assert (started.returncode, started.stderr) == (0, "")
        assert "archive" not in started.stdout


def test_without_an_archive_java_gets_no_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runtime: Java) -> None:
    monkeypatch.setattr(java, "CLASSES", tmp_path)

    assert java.class_options(runtime) == ""
