"""The broker's processes in the tests are forks, and find what a new process finds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from tests.broker import forks
from tests.broker.polling import FIRST_QUESTION_SECONDS, eventually

# Prints what a program may ask about its process.
TELLS = """
import gc, json, os, signal, sys
print(json.dumps({
    "name": __name__,
    "arguments": sys.argv,
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "path": sys.path,
    "leads its session": os.getsid(0) == os.getpid(),
    "signals": [str(signal.getsignal(number)) for number in signal.valid_signals()],
    "input": sys.stdin.read(),
    "output": [sys.stdout.encoding, sys.stdout.write_through, sys.stderr.line_buffering],
    "collects garbage": gc.isenabled(),
    "settings": "mqbroker.settings" in sys.modules,
    "open files": [name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")],
}))
"""
STARTS_AND_WAITS = """
import os, sys, time
from pathlib import Path
from tests.broker import forks
folder = Path(sys.argv[1])
child = forks.ForkedChild("sleeper", [sys.executable, str(folder / "sleeps.py")], os.environ, folder / "log", folder)
child.start()
print(child.pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, **forks.PATH, "MQBROKER_DELAY_LEVELS": "1s 2s"}


@pytest.mark.parametrize("words", [["tells.py"], ["-m", "tells"], ["-c", TELLS]])
def test_a_fork_finds_what_a_new_process_finds(words: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    command = [sys.executable, *words, "two words"]
    new = subprocess.run(
        command, env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True
    )

    said = tmp_path / "said"
    status = forks.server().fork(command, environment, tmp_path, said, said).wait()

    assert status == new.returncode == 0
    assert json.loads(said.read_bytes()) == json.loads(new.stdout)


def test_a_fork_ends_with_the_status_and_the_traceback_of_its_program(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import sys\nprint('printed')\nopen('nothing')")
    (tmp_path / "exits.py").write_text("import sys\nsys.exit('refused')")

    fails = forks.run([sys.executable, str(tmp_path / "fails.py")], os.environ)
    exits = forks.run([sys.executable, str(tmp_path / "exits.py")], os.environ)

    assert (fails.returncode, fails.stdout) == (1, "printed\n")
    assert fails.stderr.endswith("FileNotFoundError: [Errno 2] No such file or directory: 'nothing'\n")
    assert (exits.returncode, exits.stdout, exits.stderr) == (1, "", "refused\n")


@pytest.mark.parametrize("variable", ["LD_PRELOAD", "PYTHONPATH", "TZ"])
def test_a_process_with_another_variable_than_the_brokers_own_is_no_fork(
    variable: str, environment: dict[str, str]
) -> None:
    assert forks.server().forks([sys.executable, "manage.py"], environment)
    assert not forks.server().forks([sys.executable, "manage.py"], {**environment, variable: "other"})
    assert not forks.server().forks(["/bin/true"], environment)


def test_a_variable_that_a_test_has_set_is_that_of_later_forks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text("import os\nprint(os.environ['SET_BY_A_TEST'])")
    before = forks.server()
    monkeypatch.setenv("SET_BY_A_TEST", "yes")

    assert forks.server().forks([sys.executable, "manage.py"], os.environ)
    assert forks.run([sys.executable, str(tmp_path / "says.py")], os.environ).stdout == "yes\n"
    assert not before.forks([sys.executable, "manage.py"], os.environ)


def test_a_template_gives_its_forks_what_a_new_process_has(environment: dict[str, str]) -> None:
    looks = "import os; from django.conf import settings; print(settings.DELAY_LEVELS, dict(os.environ))"
    command = commands.manage("shell", "--verbosity", "0", "-c", looks)
    new = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)

    # The first one is no fork of a template.
    forked = [forks.run(command, environment) for _ in range(3)]

    assert new.returncode == 0, new.stderr
    assert [(done.stdout, done.stderr) for done in forked] == [(new.stdout, new.stderr)] * 3


def test_each_process_says_by_itself_that_its_settings_are_refused(environment: dict[str, str]) -> None:
    command, refused = commands.manage("statements"), {**environment, "MQBROKER_DELAY_LEVELS": "soon"}

    said = {forks.run(command, refused).stderr for _ in range(3)}

    assert len(said) == 1
    assert "MQBROKER_DELAY_LEVELS" in said.pop()


FAILS = "import sys, time\nprint('refused', flush=True)\ntime.sleep(float(sys.argv[1]))\nsys.exit(3)"


def started(folder: Path, *words: str) -> forks.ForkedChild:
    """A child that fails after so many seconds."""
    (folder / "fails.py").write_text(FAILS)
    child = forks.ForkedChild(
        "beat-2", [sys.executable, str(folder / "fails.py"), *words], os.environ, folder / "log", folder
    )
    child.start()
    return child


def test_a_wait_ends_once_a_process_that_a_test_has_started_has_failed(tmp_path: Path) -> None:
    child = started(tmp_path, "0")

    with pytest.raises(AssertionError, match=r"beat-2 has ended by 3:\nrefused\nat last: ''"):
        eventually(lambda: "")

    child.stop()


def test_a_wait_goes_on_after_an_end_that_a_test_has_caused_or_seen(tmp_path: Path) -> None:
    killed, seen = started(tmp_path, "1000"), started(tmp_path, "0")
    began = time.monotonic()
    killed.send(signal.SIGKILL)

    eventually(lambda: not seen.is_running())

    assert eventually(lambda: time.monotonic() > began + 2 * FIRST_QUESTION_SECONDS)


def test_forks_end_with_the_process_that_had_them_forked(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text("import time\ntime.sleep(1000)")
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTS_AND_WAITS, str(tmp_path)],
        env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert starter.stdout
    fork = psutil.Process(int(starter.stdout.readline()))
    assert fork.is_running()

    starter.kill()
    starter.communicate()

    eventually(lambda: not fork.is_running() or fork.status() == psutil.STATUS_ZOMBIE)
