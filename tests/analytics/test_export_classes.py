"""Java keeps the classes of Spark, starts with them, and starts without a word where they are no longer its own."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from analytics import java
from analytics.java import BUNDLED_JAVA, Java, version_of
from analytics.management.classes import SAID_SECONDS
from tests.analytics.conftest import ROOT
from tests.broker.polling import at_this_load

SAID = "mq: Java keeps Spark's classes for later starts; Ctrl-C leaves them out.\n"
# For a Java that is stopped, and for one on a busy machine.
FROZEN_SECONDS, MOST_SECONDS = SAID_SECONDS + 2, 600


def options(runtime: Java) -> list[str]:
    """As Spark's scripts give them to Java."""
    return java.class_options(runtime).replace('"', "").split()


def test_a_session_of_spark_starts_with_the_classes_that_were_kept(spark: SparkSession, runtime: Java) -> None:
    if not java.archive(runtime).exists():
        pytest.skip("this user may not write to the environment")
    programs = [child for child in psutil.Process().children(recursive=True) if "java" in child.name()]

    used = {mapped.path for program in programs for mapped in program.memory_maps()}

    assert str(java.archive(runtime).resolve()) in used


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


# What each command does around its work, with the archives in a folder of the test, a Java of its own, and a time in
# seconds for the archive. The work only starts Spark's Java, whose few classes are soon written.
COMMAND = """
import sys
from functools import partial
from pathlib import Path
from django.core.management.base import BaseCommand
from pyspark import SparkContext
from analytics import java
from analytics.errors import FolderRefused
from analytics.management import classes, spark
java.CLASSES, found = Path(sys.argv[1]), java.find([Path(sys.argv[2])])
java.find = lambda candidates: found
classes.kept = partial(classes.kept, end_seconds=float(sys.argv[3]))
def work():
    SparkContext._ensure_initialized()
    print("Java is there.", flush=True)
    sys.stdin.readline()
    if sys.argv[4] == "fails":
        raise FolderRefused("No.")
    return "Done"
spark.run(BaseCommand(), {"nice": "0"}, work, "")
"""


def command(runtime: Java, folder: Path, work: str = "") -> tuple[int, str, bool]:
    """A command: its exit code, what it says of a failure, and whether a Java of it is left.

    Of the work that `freezes` Java is stopped at its end, before the archive is written.
    """
    seconds = FROZEN_SECONDS if work == "freezes" else MOST_SECONDS
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(folder / "classes"), str(runtime.executable), str(seconds), work],
        cwd=ROOT,
        env={**os.environ, "JAVA_HOME": str(runtime.home(folder)), "SPARK_CONF_DIR": str(java.NO_SETTINGS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        own = psutil.Process(process.pid)
        assert process.stdout is not None
        assert process.stdout.readline() == "Java is there.\n"
        javas = [child for child in own.children(recursive=True) if child.name() == "java"]
        assert javas
        if work == "freezes":
            for found in javas:
                found.suspend()
        # The work ends once this has seen its Java.
        _, err = process.communicate("\n")
    # Java says more to its standard error than Spark's settings of an export would let it say.
    said = "".join(line for line in err.splitlines(keepends=True) if line.startswith(("mq: ", "django")))
    return process.returncode, said, psutil.wait_procs(javas, timeout=at_this_load(10))[1] != []


@pytest.mark.spark
def test_a_command_that_fails_keeps_no_classes_and_leaves_no_java(runtime: Java, tmp_path: Path) -> None:
    code, err, is_left = command(runtime, tmp_path, "fails")

    assert (code, is_left) == (1, False)
    assert err == "django.core.management.base.CommandError: No. (folder_refused)\n"
    assert list((tmp_path / "classes").iterdir()) == []


@pytest.mark.spark
def test_the_first_command_that_can_end_java_in_time_keeps_the_classes_and_later_ones_leave_them(
    runtime: Java, tmp_path: Path
) -> None:
    classes = tmp_path / "classes"

    # As on a busy machine.
    frozen = command(runtime, tmp_path, "freezes")
    left = list(classes.iterdir())
    first = command(runtime, tmp_path)
    [archive] = classes.iterdir()
    made = archive.stat().st_mtime_ns
    second = command(runtime, tmp_path)

    assert frozen == (0, SAID, False)
    assert left == []
    assert (first[0], first[1] in ("", SAID), first[2]) == (0, True, False)
    assert archive.name == java.archive(runtime).name
    assert second == (0, "", False)
    assert [(path.name, path.stat().st_mtime_ns) for path in classes.iterdir()] == [(archive.name, made)]
