"""An export gives way to all else, and its processes end with the one that was started."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from pyspark.sql import SparkSession

from analytics.management import watch
from analytics.management.background import START_NICENESS
from tests.analytics import writers
from tests.analytics.conftest import ROOT, start
from tests.analytics.kills import WAIT_SECONDS, wait_until
from tests.analytics.writers import Connection
from tests.broker.polling import at_this_load

Found = TypeVar("Found")

WORDS = ("--nice", "19", "--cores", "1")
# Of a process: its niceness, its class at the disk, how many processors it may use, and whether its session is another
# than ours, before its first row.
AT_FIRST = (START_NICENESS, psutil.IOPRIO_CLASS_IDLE, 1, True)
GROUP = "mqbroker-background"
GROUPS = Path("/sys/fs/cgroup/cpu")
# Only root, outside a container, may make a group of the processors' controller.
MAY_MAKE_GROUPS = os.access(GROUPS / "cpu.shares", os.W_OK)
# Hides the groups from a command, where it could make one.
NO_GROUPS = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh")
pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


def manners(process: psutil.Process) -> tuple[int, int, int, bool]:
    """How a process gives way."""
    number = process.pid
    is_apart = os.getsid(number) != os.getsid(0)
    return process.nice(), process.ionice().ioclass, len(os.sched_getaffinity(number)), is_apart


def of_living(processes: Sequence[psutil.Process], look: Callable[[psutil.Process], Found]) -> set[Found]:
    """What is found of those that have not ended by then, as a shell of Spark's start may have: the kernel takes from a
    process that ends its class at the disk and its group.
    """
    found = [(process, look(process)) for process in processes]
    return {seen for process, seen in found if process.status() != psutil.STATUS_ZOMBIE}


def is_in_idle_group(process: psutil.Process) -> bool:
    """Whether the kernel gives it a processor only where no process of another group wants one."""
    lines = Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()
    [path] = (line.split(":")[2] for line in lines if line.split(":")[1] == "cpu")
    return (GROUPS / path.lstrip("/") / "cpu.idle").read_text().strip() == "1"


def is_java_there(export: subprocess.Popen[str]) -> bool:
    """Whether the export has come as far as Java itself."""
    return any(process.name() == "java" for process in psutil.Process(export.pid).children(recursive=True))


def begun(
    database: str, target: Path, before: Sequence[str] = ()
) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """An export whose Java runs, and all that it started."""
    export = start(database, target, *WORDS, before=before)
    wait_until(lambda: is_java_there(export), export)
    return export, psutil.Process(export.pid).children(recursive=True)


def test_all_of_an_export_gives_way_and_ctrl_c_ends_it(busy_database: str, tmp_path: Path) -> None:
    export, others = begun(busy_database, tmp_path / "export", NO_GROUPS if MAY_MAKE_GROUPS else ())
    with export:
        found = of_living(others, lambda process: (*manners(process), os.sched_getscheduler(process.pid)))
        export.send_signal(signal.SIGINT)
        _, said = export.communicate(timeout=WAIT_SECONDS)

    assert found == {(*AT_FIRST, os.SCHED_BATCH)}
    assert export.returncode == 130
    assert f"The export was stopped; {tmp_path / 'export'} is as it was." in said
    assert psutil.wait_procs(others, timeout=WAIT_SECONDS)[1] == []


@pytest.mark.long
@pytest.mark.skipif(not MAY_MAKE_GROUPS, reason="this user may make no group of the processors' controller")
def test_all_of_an_export_is_in_a_group_of_the_idle_class_behind_its_first_row(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    writers.live(writer, ended=40, undecided=10)
    export, others = begun(busy_database, tmp_path / "export")
    with export:
        wait_until(lambda: of_living(others, is_in_idle_group) == {True}, export)
        export.send_signal(signal.SIGINT)
        _, said = export.communicate(timeout=WAIT_SECONDS)

    assert export.returncode == 130, said
    assert psutil.wait_procs(others, timeout=WAIT_SECONDS)[1] == []


def test_all_of_an_export_ends_within_seconds_of_sigterm(busy_database: str, tmp_path: Path) -> None:
    export, others = begun(busy_database, tmp_path / "export")
    with export:
        export.terminate()

        assert psutil.wait_procs(others, timeout=at_this_load(10))[1] == []
        assert export.wait(WAIT_SECONDS) == 128 + signal.SIGTERM
    assert not (tmp_path / "export").exists()


@pytest.mark.long
def test_all_of_an_export_ends_when_the_process_that_was_started_is_killed(busy_database: str, tmp_path: Path) -> None:
    export, others = begun(busy_database, tmp_path / "export")
    with export:
        export.kill()

        assert psutil.wait_procs(others, timeout=WAIT_SECONDS)[1] == []
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize(
    ("command", "words", "niceness", "processors"),
    [
        ("export", (), START_NICENESS, 1),
        ("export", ("--ni=3", "--co", "2"), 3, 2),
        pytest.param("export", ("--nice", "0"), 0, os.cpu_count(), marks=pytest.mark.long),
        ("report", (), START_NICENESS, 1),
    ],
)
def test_a_command_gives_way_before_it_imports_django(
    command: str, words: Sequence[str], niceness: int, processors: int, tmp_path: Path
) -> None:
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.analytics.noting_settings",
        "MQ_NOTES": f"{tmp_path}/notes",
    }
    del environ["MQBROKER_EXPORT_NICE"]

    ended = subprocess.run(
        [sys.executable, "manage.py", command, *words], cwd=ROOT, env=environ, capture_output=True, timeout=WAIT_SECONDS
    )

    # It misses the name of a folder, which only Django says.
    assert ended.returncode == 2
    assert (tmp_path / "notes").read_text() == f"{niceness} {processors}\n"


# Enters and starts a process that waits for ever. Prints, at first, after the first row, and at last: the niceness and
# the number of processors of that process, the command's own niceness, and whether the idle group has the command.
STARVED = """
import os, subprocess, sys
from analytics.management import background, watch
background.enter(19, 1)
waiting = subprocess.Popen(["sleep", "600"])
def state():
    processors = len(os.sched_getaffinity(waiting.pid))
    is_idle = background.IDLE_GROUP in open("/proc/self/cgroup").read()
    return os.getpriority(os.PRIO_PROCESS, waiting.pid), processors, os.getpriority(os.PRIO_PROCESS, 0), is_idle
print(*state(), flush=True)
background.step_back(19)
print(*state(), flush=True)
with watch.kept(19, print, still_seconds=2.0):
    sys.stdin.readline()
print(*state(), flush=True)
waiting.kill()
"""


def test_a_row_is_known_by_the_task_that_made_it(spark: SparkSession) -> None:
    assert spark.range(3).count() == 3

    assert watch.has_rows()


def test_a_command_that_gets_no_processor_gives_way_no_longer_and_says_so() -> None:
    command = [sys.executable, "-c", STARVED]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        at_first, behind, said = (process.stdout.readline() for _ in range(3))
        process.stdin.close()
        after = process.stdout.readline()

    assert at_first == f"{START_NICENESS} 1 {START_NICENESS} False\n"
    # The command itself watches the others, and must not starve with them.
    assert behind == f"19 1 {START_NICENESS} False\n"
    assert re.match(r"In \d s it got 0\.\d s of a processor: its priority is no longer lowered", said)
    assert after.split()[1] == str(os.cpu_count())
    # Only root may raise a niceness.
    assert after.split()[0] == (str(os.nice(0)) if os.geteuid() == 0 else "19")
