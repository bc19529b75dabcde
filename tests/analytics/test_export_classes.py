"""Java keeps the classes of Spark, starts with them, and starts without a word where they are no longer its own."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from analytics import java
from analytics.java import BUNDLED_JAVA, Java, version_of
from mqbroker.embedded.cli import classes
from tests.analytics.conftest import ROOT
from tests.broker.polling import at_this_load, eventually


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


# A Java that does not end for as long as it is let: as one that gets no processor while it keeps its classes.
ENDLESS = """\
#!/bin/sh
"{java}" "$@"
for word do case $word in -XX:ArchiveClassesAtExit*) sleep 600 ;; esac; done
"""


@pytest.mark.spark
@pytest.mark.parametrize("ended_by", [pytest.param("its time", marks=pytest.mark.long), "a signal"])
def test_what_keeps_the_classes_ends_with_its_java_and_in_one_sentence(
    runtime: Java, tmp_path: Path, ended_by: str
) -> None:
    endless = tmp_path / "bin" / "java"
    endless.parent.mkdir()
    endless.write_text(ENDLESS.format(java=runtime.executable))
    endless.chmod(0o755)
    command = [sys.executable, "-m", "analytics.management.keep_classes", "1"]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "JAVA_HOME": str(tmp_path)}, stderr=subprocess.PIPE, text=True
    ) as process:
        keeping = psutil.Process(process.pid)
        if ended_by == "a signal":
            eventually(lambda: any("java" in one.name() for one in keeping.children(recursive=True)), within_seconds=60)
            process.terminate()
        started: list[psutil.Process] = []
        while process.poll() is None:
            started += keeping.children(recursive=True)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        assert process.stderr is not None
        said = process.stderr.read()

    assert "Traceback" not in said
    if ended_by == "a signal":
        assert process.returncode == 128 + signal.SIGTERM
    else:
        assert process.returncode == 1
        assert (
            "mq: Java keeps no classes of Spark: Java has not ended within 1 s. The next start tries it again." in said
        )
    assert psutil.wait_procs(set(started), timeout=at_this_load(10))[1] == []


@pytest.mark.parametrize(("code", "is_stamped"), [(0, True), (1, False), (2, False)])
def test_only_classes_that_were_kept_are_stamped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, is_stamped: bool
) -> None:
    monkeypatch.setattr(classes, "STAMPS", tmp_path)
    monkeypatch.setattr(classes, "COMMAND", [sys.executable, "-c", f"raise SystemExit({code})"])

    classes.keep_once()

    assert (tmp_path / "classes").exists() == is_stamped
