"""`./mq test` and `./mq bench` run on servers of their own, which are gone afterwards, however it ends."""

import os
import signal
import sys
from pathlib import Path

import pytest

from embedded.cli import foreground
from embedded.cli import test as command
from embedded.processes import identity
from tests.cli.conftest import Run

LOOK = """
import pathlib, sys
from embedded.cli import foreground, private
with private.servers() as environment:
    folder = environment["MQBROKER_DATA_DIR"]
    print(environment["DATABASE_URL"], folder, sep="\\n")
    print(pathlib.Path(folder, "postgres", "postmaster.pid").read_text().split()[0], flush=True)
    sys.exit(foreground.run(["sh", "-c", "echo running; exec sleep 1000"], environment))
"""


# The command sends its signal while its parent is still busy starting it.
AT_ONCE = """
import sys
from embedded.cli import foreground, private
with private.servers() as environment:
    command = ["sh", "-c", f"kill -{sys.argv[1]} $PPID; exec sleep 1000"]
    print(*{foreground.run(command, environment) for _ in range(10)})
"""


# One passes and one fails; each writes down the database that Django was given.
ONE_OF_TWO = """
import pathlib
from django.conf import settings

def test_one():
    pathlib.Path({place!r}).write_text(str(settings.DATABASES["default"]["PORT"]))
    assert {passes}
"""


def test_each_process_of_pytest_has_servers_of_its_own_and_its_exit_code_is_passed_on(
    run_python: Run, tmp_path: Path
) -> None:
    for name in ("passes", "fails"):
        text = ONE_OF_TWO.format(place=str(tmp_path / name), passes=name == "passes")
        (tmp_path / f"test_{name}.py").write_text(text)
    # Without the plugins that no test uses, as this checkout's own: to import them takes seconds in each process.
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:schemathesis -p no:valkey -p no:anyio\n")
    options = ["-q", "-n", "2", "-c", str(tmp_path / "pytest.ini")]
    process = run_python("-m", "embedded.cli", "test", *options, str(tmp_path))

    out, _ = process.communicate(timeout=240)

    assert process.returncode == 1, out
    assert "1 failed, 1 passed" in out.splitlines()[-1]
    assert (tmp_path / "passes").read_text() != (tmp_path / "fails").read_text()


def test_all_tests_run_in_four_processes_without_spark_in_six_and_a_path_in_one() -> None:
    every, without_spark = (4, 6) if len(os.sched_getaffinity(0)) >= 2 else (0, 0)

    assert [command.processes(words) for words in ([], ["-m", "browser"], ["-k", "orders"])] == [every] * 3
    assert command.processes(["-q", "-m", "not browser and not spark"]) == without_spark
    assert command.processes(["-m", "not spark", "tests/cli"]) == 0
    for words in (["tests/cli"], ["-q", "tests/cli/test_private.py::test_x"], ["--pdb"], ["-n0"]):
        assert command.processes(words) == 0
    assert command.processes(["-n", "3", "tests/cli"]) == 3


def test_the_callers_database_is_never_used_and_nothing_is_left(run_python: Run) -> None:
    theirs = "postgresql://nobody@127.0.0.1:1/production"
    process = run_python("-c", LOOK, DATABASE_URL=theirs, REDIS_URL="redis://127.0.0.1:1/0")
    assert process.stdout
    url, folder, postgres, _ = (process.stdout.readline().strip() for _ in range(4))
    assert url != theirs

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)

    assert process.returncode == 128 + signal.SIGTERM
    assert identity.of(int(postgres)) is None
    assert not Path(folder).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_as_the_command_starts_ends_it_too(run_python: Run, number: signal.Signals) -> None:
    process = run_python("-c", AT_ONCE, str(int(number)))

    out, err = process.communicate(timeout=60)

    assert (out, err) == (f"{128 + number}\n", "")


def test_a_foreground_command_returns_its_exit_code_as_a_shell_does() -> None:
    assert foreground.run([sys.executable, "-c", "import sys; sys.exit(7)"], os.environ) == 7
    assert foreground.run(["sh", "-c", "kill -9 $$"], os.environ) == 128 + signal.SIGKILL
