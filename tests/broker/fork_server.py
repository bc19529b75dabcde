"""A process that has imported the broker's modules, and forks each process of a broker that a test starts.

Nine tenths of the start of a web process, a worker or a command go into imports that no setting changes: installed
packages and those modules of the checkout that read no settings. They are imported here once; a fork then reads its
settings, imports the rest and runs as `python -m` would have it run.

`python fork_server.py <socket> …`; a line of JSON is a request, and a line of JSON its answer:
`{"words": […], "environment": {…}, "folder": …, "stdout": …, "stderr": …, "end_signal": 15}` → `{"pid": 7}`,
`{"pid": 7}` → `{"status": null}` while it runs, and `{"server": true}` → `{"server": 6}`, its own id. Its forks end
with it. Each socket has a server of its own, which ends when the other end of its socket is closed; the servers, too,
are forks of the one that has imported, and none is the child of another: what uses the processor below one is its own.
The processes of one broker are forks of a template, which is a fork of the server: `fork_templates.py`.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from typing import Any, NoReturn

from tests.broker.fork_templates import Templates, begin, import_for

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
SETTINGS = "mqbroker.settings"
# They make something of the variables of the process that imports them.
NEVER_HERE = (
    SETTINGS,
    "mqbroker.environment.export",
    "mqbroker.environment.rocketmq",
    "mqbroker.environment.sign_on",
    "mqbroker.environment.watching",
    "mqbroker.celery",
)
# What web processes, workers, beat and commands are made of.
PROGRAMS = (
    "mqbroker.wire.server",
    "mqbroker.web.application",
    "mqbroker.celery.worker",
    "mqbroker.celery.beat",
    "mqbroker.urls",
)
# Django's million takes 0.4 s of a core for each sign-in and each new user. A process that is not forked has it.
ITERATIONS_OF_PASSWORDS = 10_000
# The exit status of this process once its program has run to its end.
ended: list[int] = []


def modules_of_programs() -> list[str]:
    """The modules that the broker imports, in the order of their imports: found out in a fork."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
        importlib.import_module("django").setup()
        for name in PROGRAMS:
            importlib.import_module(name)
        with os.fdopen(writer, "w") as opened:
            json.dump(list(sys.modules), opened)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as opened:
        names: list[str] = json.load(opened)
    os.waitpid(pid, 0)
    return names


def import_without_settings(names: list[str]) -> None:
    """Imports what needs no settings; a fork imports the rest itself, by the variables that it is given."""
    from django.core.exceptions import AppRegistryNotReady, ImproperlyConfigured

    # `None` is how Python notes that a module cannot be imported: what needs one of these fails, and is left out.
    for name in NEVER_HERE:
        sys.modules[name] = None  # type: ignore[assignment]  # which typeshed leaves out
    for name in names:
        try:
            importlib.import_module(name)
        except (AppRegistryNotReady, ImproperlyConfigured, ImportError):
            for begun in [loaded for loaded in sys.modules if loaded.startswith(f"{name}.")]:
                del sys.modules[begun]
    for name in NEVER_HERE:
        del sys.modules[name]


class Forked(BaseException):
    """Leaves the loop of a server in its fork, which is to run a program."""

    def __init__(self, server: int, request: dict[str, Any]) -> None:
        self.server = server
        self.request = request


class Server:
    """Answers the requests of a socket. A template is a server, too, and has no templates of its own."""

    def __init__(self, connected: socket.socket, *, is_template: bool = False) -> None:
        self._requests, self._answers = connected.makefile("r"), connected.makefile("w")
        connected.close()
        self._is_template = is_template
        self._templates = Templates()

    def serve(self) -> None:
        """Answers until there are no more requests. Raises Forked in a fork."""
        if self._is_template:
            print("ready", file=self._answers, flush=True)
        for line in self._requests:
            request: dict[str, Any] = json.loads(line)
            answer: dict[str, int | None]
            if "server" in request:
                answer = {"server": os.getpid()}
            elif "pid" in request:
                template = self._templates.having(request["pid"])
                answer = {"status": template.status(request["pid"]) if template else status(request["pid"])}
            else:
                answer = {"pid": self._forked(request)}
            print(json.dumps(answer), file=self._answers, flush=True)

    def _forked(self, request: dict[str, Any]) -> int | None:
        """The id of a new process; None from a template in which an import has failed."""
        if self._is_template:
            try:
                import_for(request["words"])
            except BaseException:  # noqa: BLE001  # a process without a template meets the same error
                return None
            gc.freeze()
            # What an import has set is set in a process that imports it, too.
            request["environment"] = dict(os.environ)
        elif pid := self._templates.fork(request, lambda connected: self._become_template(request, connected)):
            return pid
        server = os.getpid()
        if not (pid := os.fork()):
            self._leave()
            raise Forked(server, request)
        return pid

    def _become_template(self, request: dict[str, Any], connected: socket.socket) -> NoReturn:
        self._leave()
        try:
            begin(request)
            Server(connected, is_template=True).serve()
        except Forked:
            raise
        except BaseException:  # noqa: BLE001  # a process without a template meets the same error
            os._exit(1)
        os._exit(0)

    def _leave(self) -> None:
        """Leaves to the server, in a fork, what the server has open."""
        self._templates.leave()
        self._requests.close()
        self._answers.close()


def status(pid: int) -> int | None:
    """The exit status of a fork, as subprocess has it; None while it runs. What it leaves in its session is ended."""
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # Until it is waited for, its id cannot belong to another group.
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def become(server: int, request: dict[str, Any]) -> None:
    """Gives this fork what `subprocess` and `launch.py` give to a process."""
    os.setsid()
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, request["end_signal"], 0, 0, 0)
    # A list of processes shows the module or script.
    libc.prctl(PR_SET_NAME, request["words"][request["words"][0] == "-m"].encode(), 0, 0, 0)
    if os.getppid() != server:
        sys.exit("the parent ended before its child began")
    for number, path in enumerate([os.devnull, request["stdout"], request["stderr"]]):
        opened = os.open(path, os.O_RDWR | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    # What multiprocessing took for the program was this file.
    sys.modules.pop("__mp_main__", None)
    gc.enable()


def run(words: list[str]) -> None:
    """`-m module …`, `-c code …` or `script …`, as Python's own command line does."""
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    elif words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


def run_to_its_end(words: list[str]) -> None:
    """The same; a program that fails is Python's to report."""
    try:
        run(words)
    except SystemExit as left:
        if left.code:
            raise
    ended.append(0)


def end_at_once() -> None:
    """Spares 64 ms of CPU, in which Python takes 300 modules apart whose pages were shared until then."""
    for status in ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def socket_of(numbers: list[int]) -> int:
    """The socket of this process: this one serves the first, and forks that are not its children serve the others."""
    for number in numbers[1:]:
        if not os.fork():
            if os.fork():
                os._exit(0)
            return number
        os.wait()
    return numbers[0]


def main(*sockets: str) -> None:
    # The first one is the last to run: all that the broker has to do at its end is done before.
    atexit.register(end_at_once)
    gc.disable()
    # This file's folder: what is run has another.
    del sys.path[0]
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)
    import_without_settings(modules_of_programs())
    importlib.import_module("django.contrib.auth.hashers").PBKDF2PasswordHasher.iterations = ITERATIONS_OF_PASSWORDS
    # Pages that a collection does not write to stay shared.
    gc.freeze()
    numbers = [int(number) for number in sockets]
    mine = socket_of(numbers)
    for number in set(numbers) - {mine}:
        os.close(number)
    try:
        Server(socket.socket(fileno=mine)).serve()
        return
    except Forked as fork:
        forked = fork
    become(forked.server, forked.request)
    run_to_its_end(forked.request["words"])


if __name__ == "__main__":
    main(*sys.argv[1:])
