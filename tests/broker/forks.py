"""Processes that are forked from one that has imported what they need: `fork_server.py` says how."""

import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child

PROGRAM = Path(__file__).with_name("fork_server.py")
# What the settings of the broker and of the tests' programs are read from, what pytest notes for itself, the width of a
# help, and what Spark and Polars set in a process that imports them: the server imports neither. A difference in any
# other variable may concern Python, the loader of programs or an installed package: that process is started anew.
OWN = (
    *("MQBROKER_", "DATABASE_URL", "DIRECT_DATABASE_URL", "REDIS_URL", "API_KEY", "DJANGO_SETTINGS_MODULE", "PYTEST_"),
    *("COLUMNS", "SHOP_DATABASE_URL", "CELERY_BROKER_URL", "PROJECT", "MORE_SETTINGS", "MQ_CALLED_FROM"),
    *("SPARK_", "PYSPARK_", "_RJEM_MALLOC_CONF"),
)


def path_of(checkout: Path) -> dict[str, str]:
    """The variable by which Python finds the modules of a checkout."""
    return {"PYTHONPATH": os.pathsep.join([str(checkout), str(checkout / "client")])}


PATH = path_of(ROOT)
POLL_SECONDS = 0.01


class Fork:
    """A forked process, with the interface of `subprocess.Popen` that is used here."""

    def __init__(self, server: "ForkServer", pid: int) -> None:
        self._server = server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status; None while it runs. What it leaves in its session ends with it."""
        if self.returncode is None:
            self.returncode = self._server.ask({"pid": self.pid})["status"]
        return self.returncode

    def wait(self) -> int:
        """Waits for the end; gives the exit status."""
        while (status := self.poll()) is None:
            time.sleep(POLL_SECONDS)
        return status


class ForkServer:
    """The process that forks. It ends with this one, whose end of the socket is then closed."""

    def __init__(self, environment: Mapping[str, str], connected: socket.socket) -> None:
        self.environment = environment
        self._requests, self._answers = connected.makefile("w"), connected.makefile("r")
        # They hold it open.
        connected.close()
        self._turn = threading.Lock()

    @functools.cached_property
    def pid(self) -> int:
        """Of the process that forks."""
        return int(self.ask({"server": True})["server"])

    def forks(self, command: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Whether a fork runs the command as a new process would: it is Python, with the same variables."""
        return command[0] == sys.executable and others(environment) == others(self.environment)

    def fork(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        stdout: Path,
        stderr: Path,
        end_signal: signal.Signals = signal.SIGTERM,
        *,
        is_one_of_several: bool = False,
    ) -> Fork:
        """Starts a command in a session of its own; its output is appended to the files.

        The first one of several with the same variables makes a template for all of them; else the second one does.
        """
        for file in (stdout, stderr):
            file.touch()
        request = {
            "words": list(command[1:]),
            "environment": dict(environment),
            "folder": str(folder),
            "stdout": str(stdout),
            "stderr": str(stderr),
            "end_signal": int(end_signal),
            "is_one_of_several": is_one_of_several,
        }
        return Fork(self, self.ask(request)["pid"])

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request and its answer."""
        with self._turn:
            print(json.dumps(request), file=self._requests, flush=True)
            answer: dict[str, Any] = json.loads(self._answers.readline())
        return answer

    def close(self) -> None:
        """Leaves it to the other processes that have this end of its socket."""
        self._requests.close()
        self._answers.close()


def others(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are none of the broker's own."""
    return {name: value for name, value in environment.items() if not name.startswith(OWN)}


def start(count: int) -> list[ForkServer]:
    """So many, for as many processes of tests: the packages are imported once."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OWN[0])} | PATH
    pairs = [socket.socketpair() for _ in range(count)]
    numbers = [theirs.fileno() for _, theirs in pairs]
    subprocess.Popen(
        [sys.executable, str(PROGRAM), *map(str, numbers)],
        stdin=subprocess.DEVNULL,
        pass_fds=numbers,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )
    for _, theirs in pairs:
        theirs.close()
    return [ForkServer(environment, ours) for ours, _ in pairs]


# The servers of this process, by the variables that their forks have in common.
_servers: dict[frozenset[tuple[str, str]], ForkServer] = {}


def use(server: ForkServer) -> None:
    """Has this process use a server that another one has started."""
    _servers[frozenset(others(server.environment).items())] = server


def server() -> ForkServer:
    """The one of this process, started at its first use; another one when a test has set a variable since."""
    variables = frozenset(others(os.environ).items())
    if variables not in _servers:
        [_servers[variables]] = start(1)
    return _servers[variables]


def run(
    command: Sequence[str], environment: Mapping[str, str], checkout: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Runs a command in a checkout to its end, as `subprocess.run` with captured output does."""
    if not server().forks(command, environment):
        return subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as folder:
        stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
        status = server().fork(command, environment, ROOT, stdout, stderr).wait()
        return subprocess.CompletedProcess(command, status, stdout.read_text(), stderr.read_text())


# Started, with no signal sent by a test and no end that a test has seen.
_unwatched: "weakref.WeakSet[ForkedChild]" = weakref.WeakSet()


def failed() -> str | None:
    """The status and last lines of a process that has failed by itself; None while no process has.

    A process to which a test has sent a signal does not count, nor does an end that a test has seen by `is_running`.
    """
    return next((failure for child in list(_unwatched) if (failure := child.failure())), None)


class ForkedChild(Child):
    """A child that is forked where a fork runs its command as a new process would."""

    _fork: Fork | None = None
    # Others with the same variables start soon.
    is_one_of_several = False

    @property
    def pid(self) -> int:
        return self._fork.pid if self._fork else super().pid

    @property
    def returncode(self) -> int | None:
        """As subprocess has it; None until a look has found the process ended."""
        latest = self._fork or self._process
        return latest.returncode if latest else None

    def start(self) -> None:
        if server().forks(self.command, self.environment):
            self.bound_log()
            self._fork = server().fork(
                self.command,
                self.environment,
                self.folder,
                self.log,
                self.log,
                self.stop_signal,
                is_one_of_several=self.is_one_of_several,
            )
            self.started_at = time.monotonic()
        else:
            self._fork = None
            super().start()
        _unwatched.add(self)

    def is_running(self) -> bool:
        if not (runs := self._runs()):
            _unwatched.discard(self)
        return runs

    def send(self, number: signal.Signals) -> None:
        _unwatched.discard(self)
        super().send(number)

    def send_to_group(self, number: signal.Signals) -> None:
        _unwatched.discard(self)
        super().send_to_group(number)

    def failure(self) -> str | None:
        """How the process ended, if by an error of its own."""
        if self._runs() or not self.returncode:
            return None
        return f"{self.name} has ended by {self.returncode}:\n{self.last_lines()}"

    def _runs(self) -> bool:
        return self._fork.poll() is None if self._fork else super().is_running()
