"""`./mq test` and `./mq bench` run on servers of their own, which are gone afterwards, however it ends."""

import os
import signal
import sys
from pathlib import Path

import pytest

from embedded.cli import foreground
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


def test_exit_codes_of_pytest_are_passed_on(run_python: Run) -> None:
    process = run_python("-m", "embedded.cli", "test", "tests/cli/test_locks.py", "-q", "-k", "nothing_of_this_name")

    out, _ = process.communicate(timeout=60)

    assert process.returncode == 5
    assert "deselected" in out.splitlines()[-1]


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
