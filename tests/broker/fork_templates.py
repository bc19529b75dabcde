"""Templates: forks of the fork server that have imported what all processes of one broker need.

The web processes, workers and commands of a broker have the same variables, so they read the same settings. A template
reads them once, and imports what such a program imports, as the product's own web process does for its children. The
processes of the broker are then forks of the template: two web processes, a worker and beat use 0.7 s of CPU, not 1.6.
"""

import ctypes
import importlib
import json
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG = 1
SETTINGS = "mqbroker.settings"
# What `-m mqbroker.web` imports before it serves.
OF_WEB = ("uvloop", "mqbroker.urls", "mqbroker.web.application", "mqbroker.wire.server")
# A template keeps 20 MB: those of brokers that have ended are ended, the oldest first.
MOST_TEMPLATES = 4


class Template:
    """A template, as the server has it that forked it."""

    def __init__(self, pid: int, connected: socket.socket) -> None:
        self._pid = pid
        self._requests, self._answers = connected.makefile("w"), connected.makefile("r")
        connected.close()
        self._running: set[int] = set()
        # Not when the settings are refused, or an import fails: a process without a template says so itself.
        self.is_usable = bool(self._answers.readline())

    def fork(self, request: dict[str, Any]) -> int | None:
        """The id of a new process; None when the template is not usable any more."""
        pid: int | None = self._ask(request)["pid"]
        self.is_usable = pid is not None
        if pid is not None:
            self._running.add(pid)
        return pid

    def has(self, pid: int) -> bool:
        """Whether a process that has not been seen to end is a fork of this template."""
        return pid in self._running

    def status(self, pid: int) -> int | None:
        """The exit status of one of its forks; None while the fork runs."""
        status: int | None = self._ask({"pid": pid})["status"]
        self._running -= {pid} if status is not None else set()
        return status

    @property
    def is_idle(self) -> bool:
        return not self._running

    def leave(self) -> None:
        """Leaves it to its server; at the server itself, ends it."""
        self._requests.close()
        self._answers.close()

    def end(self) -> None:
        self.leave()
        os.waitpid(self._pid, 0)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        print(json.dumps(request), file=self._requests, flush=True)
        answer: dict[str, Any] = json.loads(self._answers.readline())
        return answer


class Templates:
    """The templates of a server, by the variables and the folder of their forks."""

    def __init__(self) -> None:
        self._made: dict[str, Template] = {}
        # Of processes without a template: the second one with the same variables has one made.
        self._seen: set[str] = set()

    def fork(self, request: dict[str, Any], become: Callable[[socket.socket], None]) -> int | None:
        """The id of a new process; None where no template fits. A new template is a fork, which stays in `become`."""
        if not fits(request):
            return None
        key = json.dumps([request["folder"], request["environment"]], sort_keys=True)
        if key not in self._made:
            if not (request["is_one_of_several"] or key in self._seen):
                # Of one process alone a template costs 0.2 s of CPU more than it spares.
                self._seen.add(key)
                return None
            self._end_the_oldest()
            ours, theirs = socket.socketpair()
            if not (pid := os.fork()):
                ours.close()
                self.leave()
                become(theirs)
            theirs.close()
            self._made[key] = Template(pid, ours)
        found = self._made[key]
        return found.fork(request) if found.is_usable else None

    def having(self, pid: int) -> Template | None:
        """The template that has forked a process."""
        return next((template for template in self._made.values() if template.has(pid)), None)

    def leave(self) -> None:
        """Leaves all of them to the server; called in its forks."""
        for template in self._made.values():
            template.leave()
        self._made.clear()

    def _end_the_oldest(self) -> None:
        idle = [key for key, template in self._made.items() if template.is_idle]
        for key in idle[: max(0, len(self._made) + 1 - MOST_TEMPLATES)]:
            self._made.pop(key).end()


def fits(request: dict[str, Any]) -> bool:
    """Whether a program reads the broker's settings and imports what a template may have imported before."""
    words, environment = request["words"], request["environment"]
    is_ours = environment.get("DJANGO_SETTINGS_MODULE", SETTINGS) == SETTINGS
    return is_ours and (is_web(words) or words[:2] == ["-m", "mqbroker.celery.worker"] or bool(command(words)))


def is_web(words: list[str]) -> bool:
    """With `--reload` the first process imports nothing that may change."""
    return words[:2] == ["-m", "mqbroker.web"] and "--reload" not in words


def command(words: list[str]) -> str:
    """The name of a command of manage.py; empty for an export, which leaves before Django is imported."""
    is_one = len(words) > 1 and words[0] == "manage.py" and words[1].isalpha() and words[1] not in ("export", "help")
    return words[1] if is_one else ""


def begin(request: dict[str, Any]) -> None:
    """Makes a fork of the server a template: gives it the variables, and has Django read the settings."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    importlib.import_module("django").setup()


def import_for(words: list[str]) -> None:
    """Imports what a program needs; a second time costs nothing."""
    if is_web(words):
        for name in OF_WEB:
            importlib.import_module(name)
    elif name := command(words):
        app = importlib.import_module("django.core.management").get_commands().get(name)
        if isinstance(app, str):
            importlib.import_module(f"{app}.management.commands.{name}")
