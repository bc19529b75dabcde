"""`./mq test` and `./mq bench` run on servers of their own, which are gone afterwards, however it ends."""

import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from mqbroker.embedded.cli import foreground, private
from mqbroker.embedded.processes import identity
from tests.cli.conftest import Run
from tools import machine
from tools import test as command

LOOK = """
import pathlib, sys
from mqbroker.embedded.cli import foreground, private
with private.servers() as environment:
    folder = environment["MQBROKER_DATA_DIR"]
    print(environment["DATABASE_URL"], folder, sep="\\n")
    print(pathlib.Path(folder, "postgres", "postmaster.pid").read_text().split()[0], flush=True)
    sys.exit(foreground.run(["sh", "-c", "echo running; exec sleep 1000"], environment))
"""


# The command sends its signal while its parent is still busy starting it.
AT_ONCE = """
import sys
from mqbroker.embedded.cli import foreground, private
with private.servers() as environment:
    command = ["sh", "-c", f"kill -{sys.argv[1]} $PPID; exec sleep 1000"]
    print(*{foreground.run(command, environment) for _ in range(10)})
"""


# Its child ends at once, and the child's child computes for a second.
LEAVES_A_CHILD = """
import os, subprocess, sys, time
burn = "import time\\nwhile time.process_time() < 1: pass"
leave = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {burn!r}]).pid)"
left = int(subprocess.run([sys.executable, "-c", leave], stdout=subprocess.PIPE).stdout)
while os.path.exists(f"/proc/{left}"):
    time.sleep(0.01)
sys.exit(7)
"""


# A data folder in memory, held until the process is killed.
HOLD = """
import time
from mqbroker.embedded.cli import private
with private.folder(private.MEMORY) as folder:
    print(folder.path, flush=True)
    time.sleep(1000)
"""


REAPER = [sys.executable, "-m", "tools.reaper"]
NAMING_SERVERS = ("DATABASE_URL", "REDIS_URL", "TASK_QUEUE")
# One passes and one fails; each writes down the database that Django was given, and which settings that name
# servers would be others if they were read now.
ONE_OF_TWO = """
import pathlib, runpy
from django.conf import settings

def test_one():
    read, database = runpy.run_module("mqbroker.settings"), settings.DATABASES["default"]
    others = [name for name in {names} if read[name] != getattr(settings, name)]
    others += [name for name, value in read["DATABASES"]["default"].items() if database[name] != value]
    pathlib.Path({place!r}).write_text("\\n".join([str(database["PORT"]), *others]))
    assert {passes}
"""


def test_each_process_of_pytest_has_servers_of_its_own_and_its_exit_code_is_passed_on(
    run_python: Run, tmp_path: Path
) -> None:
    for name in ("passes", "fails"):
        text = ONE_OF_TWO.format(names=NAMING_SERVERS, place=str(tmp_path / name), passes=name == "passes")
        (tmp_path / f"test_{name}.py").write_text(text)
    # Without the plugins that no test uses, as this checkout's own: to import them takes seconds in each process.
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:schemathesis -p no:valkey -p no:anyio\n")
    options = ["-q", "-n", "2", "-c", str(tmp_path / "pytest.ini")]
    process = run_python("-m", "mqbroker.embedded.cli", "test", *options, str(tmp_path))

    out, _ = process.communicate(timeout=240)

    assert process.returncode == 1, out
    assert "1 failed, 1 passed" in out.splitlines()[-1]
    (one, *stale), (other, *others) = ((tmp_path / name).read_text().splitlines() for name in ("passes", "fails"))
    assert one != other
    assert (stale, others) == ([], [])


def test_all_tests_run_in_as_many_processes_as_the_machine_bears_and_a_path_in_one() -> None:
    cores = len(os.sched_getaffinity(0))

    for words in ([], ["-m", "browser"], ["-k", "orders"]):
        assert processes(*words) in range(min(cores, 2), 3 * cores + 1) if cores >= 2 else [0]
    for words in (["tests/cli"], ["-q", "tests/cli/test_private.py::test_x"], ["--pdb"], ["-n0"], ["-m", "x", "tests"]):
        assert processes(*words) == 0
    assert processes("-n", "3", "tests/cli") == 3


def test_a_slower_machine_has_fewer_processes_of_tests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "REFERENCE_SECONDS", 1e9)
    at_most = machine.processes(2)
    monkeypatch.setattr(machine, "REFERENCE_SECONDS", 1e-9)

    assert (at_most, machine.processes(2)) == (6, 2)


def processes(*words: str) -> int:
    return command.processes(*command.parser().parse_known_args(words))


def test_the_callers_database_is_never_used_and_nothing_is_left(run_python: Run) -> None:
    theirs = "postgresql://nobody@127.0.0.1:1/production"
    process = run_python("-c", LOOK, DATABASE_URL=theirs, REDIS_URL="redis://127.0.0.1:1/0")
    assert process.stdout
    url, folder, postgres, _ = (process.stdout.readline().strip() for _ in range(4))
    assert url != theirs

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)

    assert process.returncode == 128 + signal.SIGTERM
    assert identity.of(int(postgres)) is None
    assert not Path(folder).exists()


def test_servers_of_tests_lie_in_memory_where_there_is_enough_of_it() -> None:
    assert private.memory(1) in (private.MEMORY, None)
    assert private.memory(1_000_000) is None


@pytest.mark.skipif(not private.MEMORY.is_dir(), reason="no file system in memory")
def test_what_a_killed_run_left_in_memory_is_removed_by_the_next_and_no_other_folder(run_python: Run) -> None:
    killed, running = (run_python("-c", HOLD) for _ in range(2))
    left, held = (Path(each.stdout.readline().strip()) for each in (killed, running) if each.stdout)
    killed.kill()
    killed.wait()
    for folder in (left, held):
        os.utime(folder, (0, 0))

    private.memory(1)

    assert not left.exists()
    assert held.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_as_the_command_starts_ends_it_too(run_python: Run, number: signal.Signals) -> None:
    process = run_python("-c", AT_ONCE, str(int(number)))

    out, err = process.communicate(timeout=300)

    assert (out, err) == (f"{128 + number}\n", "")


def test_a_foreground_command_returns_its_exit_code_as_a_shell_does() -> None:
    assert foreground.run([sys.executable, "-c", "import sys; sys.exit(7)"], os.environ) == 7
    assert foreground.run(["sh", "-c", "kill -9 $$"], os.environ) == 128 + signal.SIGKILL


def test_the_processor_time_of_what_loses_its_parent_counts_for_the_run() -> None:
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])

    code = foreground.run([*REAPER, sys.executable, "-c", LEAVES_A_CHILD], os.environ)

    assert code == 7
    # Of the user and of the system.
    assert sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before > 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_of_the_tests(number: signal.Signals) -> None:
    command = ["sh", "-c", f"kill -{int(number)} $PPID; exec sleep 1000"]

    assert foreground.run([*REAPER, *command], os.environ) == 128 + number
