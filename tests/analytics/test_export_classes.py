"""Java keeps the classes of Spark, starts with them, and starts without a word where they are no longer its own."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from analytics import java
from analytics.java import BUNDLED_JAVA, Java, version_of
from analytics.management.classes import END_SECONDS, SAID_SECONDS
from tests.analytics.conftest import ROOT
from tests.analytics.writers import Connection
from tests.broker.polling import at_this_load

SAID = "mq: Java keeps Spark's classes for later starts; Ctrl-C leaves them out.\n"
FROZEN_SECONDS = SAID_SECONDS + 2


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


# `manage.py` with the archives in a folder of the test, a Java of its own, and a time in seconds for the archive.
COMMAND = """
import sys
from functools import partial
from pathlib import Path
from analytics import java
from analytics.management import classes
java.CLASSES, found = Path(sys.argv[1]), java.find([Path(sys.argv[2])])
java.find = lambda candidates: found
classes.kept = partial(classes.kept, end_seconds=float(sys.argv[3]))
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[4:]])
"""


def export(
    database: str, classes: Path, runtime: Java, target: Path, *, freezes: bool = False
) -> tuple[int, str, bool]:
    """An export: its exit code, what it says of a failure, and whether a Java of it is left.

    `freezes`: its Java is stopped once the export is done, before the archive is written.
    """
    seconds = FROZEN_SECONDS if freezes else END_SECONDS
    command = [sys.executable, "-c", COMMAND, str(classes), str(runtime.executable), str(seconds)]
    with subprocess.Popen(
        [*command, "export", "--to", str(target), "--nice", "0"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        own = psutil.Process(process.pid)
        assert process.stdout is not None
        started: set[psutil.Process] = set()
        for line in process.stdout:
            started |= set(own.children(recursive=True))
            if freezes and line.startswith("Exported to"):
                for child in started:
                    # A shell of Spark's start may have ended.
                    with contextlib.suppress(psutil.NoSuchProcess):
                        if child.name() == "java":
                            child.suspend()
        _, err = process.communicate()
    return process.returncode, err, psutil.wait_procs(started, timeout=at_this_load(10))[1] != []


@pytest.mark.spark
def test_an_export_that_fails_keeps_no_classes_and_leaves_no_java(
    runtime: Java, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "of another").touch()

    code, err, is_left = export(busy_database, tmp_path / "classes", runtime, tmp_path / "target")

    assert (code, is_left) == (1, False)
    assert "(folder_refused)" in err
    assert list((tmp_path / "classes").iterdir()) == []


@pytest.mark.spark
def test_the_first_export_that_can_end_java_in_time_keeps_the_classes_and_later_ones_leave_them(
    runtime: Java, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    classes, target = tmp_path / "classes", tmp_path / "export"

    # As on a busy machine.
    frozen = export(busy_database, classes, runtime, target, freezes=True)
    left = list(classes.iterdir())
    first = export(busy_database, classes, runtime, target)
    [archive] = classes.iterdir()
    made = archive.stat().st_mtime_ns
    second = export(busy_database, classes, runtime, target)

    assert frozen == (0, SAID, False)
    assert left == []
    assert (first[0], first[1] in ("", SAID), first[2]) == (0, True, False)
    assert archive.name == java.archive(runtime).name
    assert second == (0, "", False)
    assert [(path.name, path.stat().st_mtime_ns) for path in classes.iterdir()] == [(archive.name, made)]
