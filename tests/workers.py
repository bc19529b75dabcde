"""Processes that share the tests of one pytest: forks of it, made when all tests are collected.

Collecting takes 6 s of a core, most of it imports; a fork has all of that. It takes one group of tests after the other
and sends what pytest reports of them to the process it was forked from, which prints it. What a fork does before its
first test, as to take servers of its own, and what this process does when all have been forked, are arguments.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from tests.lanes import ALONE, LANES, PLAIN, lanes_of

PR_SET_PDEATHSIG = 1
# For the fixtures of an interrupted process to end what they started.
END_SECONDS = 10


class Next:
    """Stands for the test after the one that runs, for pytest to keep the fixtures that this next test needs too.

    pytest asks at the end of a test only. So a process takes its next group as late as it can.
    """

    def __init__(self, find: Callable[[], pytest.Item | None]) -> None:
        self._find = find

    def listchain(self) -> list[Any]:
        """The collectors of the next test; none when there is none, and then all fixtures end."""
        item = self._find()
        return item.listchain() if item else []


class Work:
    """In a fork: runs the tests that it is given until there are no more."""

    def __init__(self, session: pytest.Session, connection: Connection) -> None:
        self._session = session
        self._connection = connection
        self._given: deque[int] = deque()

    def run(self) -> None:
        """Runs all tests."""
        while item := self._next():
            self._given.popleft()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=Next(self._next))

    def _next(self) -> pytest.Item | None:
        if not self._given:
            self._say("next")
            self._given.extend(self._connection.recv())
        return self._session.items[self._given[0]] if self._given else None

    def _say(self, kind: str, **content: Any) -> None:
        self._connection.send((kind, content))

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._say("logstart", nodeid=nodeid, location=location)

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._say("logfinish", nodeid=nodeid, location=location)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._session.config.hook
        self._say("report", data=hook.pytest_report_to_serializable(config=self._session.config, report=report))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        shown = warnings.WarningMessage(
            str(warning_message.message), UserWarning, warning_message.filename, warning_message.lineno
        )
        self._say("warning", warning_message=shown, when=when, nodeid=nodeid, location=location)


def become_silent(config: pytest.Config) -> None:
    """Has this fork capture into files of its own, and leaves what the terminal shows to its parent."""
    captures = config.pluginmanager.getplugin("capturemanager")
    captures.stop_global_capturing()
    nowhere = open(os.devnull, "w")  # noqa: SIM115  # until the process ends
    for number in (1, 2):
        os.dup2(nowhere.fileno(), number)
    captures.start_global_capturing()
    captures.suspend_global_capture(in_=True)
    config.get_terminal_writer()._file = nowhere


def work(session: pytest.Session, connection: Connection, begin: Callable[[], None]) -> NoReturn:
    """What a fork does; it never returns, and ends without what its parent has left to its own end."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        become_silent(session.config)
        begin()
        run = Work(session, connection)
        session.config.pluginmanager.register(run)
        run.run()
        connection.send(("end", {}))
        status = 0
    except (KeyboardInterrupt, EOFError, BrokenPipeError):
        with contextlib.suppress(BaseException):
            session._setupstate.teardown_exact(None)
    except BaseException:  # noqa: BLE001  # also what ends a pytest is an error here
        with contextlib.suppress(OSError):
            connection.send(("error", {"text": traceback.format_exc()}))
    finally:
        os._exit(status)


class Worker:
    """A fork, as its parent has it."""

    def __init__(self, number: int, pid: int, lanes: Sequence[str]) -> None:
        self.pid = pid
        self.number = number
        self.lanes = lanes
        # The test that runs and those of its group to come.
        self.left: deque[int] = deque()
        # What pytest shows of where a test ran.
        about = {
            "id": str(number),
            "sysplatform": sys.platform,
            "version_info": sys.version_info,
            "executable": sys.executable,
        }
        self.node = SimpleNamespace(gateway=SimpleNamespace(id=str(number)), workerinfo=about)


class Workers:
    """The forks of this process, and what is left for them to run: groups of tests, by lane."""

    def __init__(
        self,
        session: pytest.Session,
        lanes: Mapping[str, Sequence[list[int]]],
        begin: Callable[[int], None],
        begun: Callable[[], None],
        *,
        is_repeating: bool = True,
    ) -> None:
        self._session = session
        self._hook = session.config.hook
        self._reporter = session.config.pluginmanager.getplugin("terminalreporter")
        self._lanes = {name: deque(lanes.get(name, ())) for name in LANES}
        self._begin = begin
        self._begun = begun
        self._running: dict[Connection, Worker] = {}
        # Of the run that is under way.
        self._count = 0
        # With `-x` the first failure is the end.
        self._is_repeating = is_repeating and not session.config.option.maxfail
        # What has failed, by test, until it has been repeated.
        self._failed: dict[str, pytest.TestReport] = {}
        # The failures of tests that passed when they were repeated.
        self.unsteady: dict[str, pytest.TestReport] = {}
        # The failures of tests that run only for their number; None while outcomes are reported.
        self._counted: Counter[str] | None = None

    def run(self, count: int) -> None:
        """Runs all tests in so many forks, then what is to run alone, then once more what has failed."""
        # Tests of several files come in turns.
        self._reporter.showfspath = False
        alone, self._lanes[ALONE] = self._lanes[ALONE], deque()
        self._run(count)
        self._lanes[ALONE] = alone
        self._run(1)
        self._repeat()

    def repeat(self, tests: Collection[str], times: int) -> Counter[str]:
        """How often each of these tests fails when it runs so many times alone, each time in a new process."""
        self._counted = Counter()
        for index in self._indexes(tests) * times:
            self._lanes[ALONE].append([index])
            self._run(1)
        return self._counted

    def _repeat(self) -> None:
        first, self._failed = self._failed, {}
        self._is_repeating = False
        for index in self._indexes(first):
            failed = self._session.testsfailed
            self._lanes[ALONE].append([index])
            self._run(1)
            if self._session.testsfailed == failed:
                name = self._session.items[index].nodeid
                self.unsteady[name] = first[name]

    def _indexes(self, tests: Collection[str]) -> list[int]:
        return [index for index, item in enumerate(self._session.items) if item.nodeid in tests]

    def _run(self, count: int) -> None:
        self._count = min(count, sum(map(len, self._lanes.values())))
        try:
            for number in range(self._count):
                self._start(number)
            self._begun()
            while self._running:
                for connection in wait(list(self._running)):
                    assert isinstance(connection, Connection)
                    self._hear(connection, self._running[connection])
        finally:
            self._stop()

    def _start(self, number: int) -> None:
        ours, theirs = Pipe()
        if not (pid := os.fork()):
            for connection in (ours, *self._running):
                connection.close()
            work(self._session, theirs, lambda: self._begin(number))
        theirs.close()
        self._running[ours] = Worker(number, pid, lanes_of(number, self._count))

    def _hear(self, connection: Connection, worker: Worker) -> None:
        try:
            kind, content = connection.recv()
        except (EOFError, ConnectionResetError):
            self._gone(connection, worker)
            return
        getattr(self, f"_{kind}")(connection, worker, **content)

    def _next(self, connection: Connection, worker: Worker) -> None:
        is_over = self._session.shouldfail or self._session.shouldstop
        group = [] if is_over else self._take(worker)
        # Beside the test that is being ended.
        worker.left.extend(group)
        # It may have been killed meanwhile, which its connection says next.
        with contextlib.suppress(OSError):
            connection.send(group)

    def _take(self, worker: Worker) -> list[int]:
        return next((self._lanes[lane].popleft() for lane in worker.lanes if self._lanes[lane]), [])

    def _logstart(self, _: Connection, __: Worker, **content: Any) -> None:
        self._hook.pytest_runtest_logstart(**content)

    def _report(self, _: Connection, worker: Worker, data: dict[str, Any]) -> None:
        report = self._hook.pytest_report_from_serializable(config=self._session.config, data=data)
        self._show(worker, report)

    def _show(self, worker: Worker, report: Any) -> None:
        # Where it ran is shown with a failure, and by -v.
        report.node = worker.node
        if self._counted is not None:
            self._counted[report.nodeid] += report.failed
            return
        # What fails at its end has left something behind, which no repetition takes back.
        if self._is_repeating and report.failed and report.when != "teardown":
            self._failed[report.nodeid] = report
            self._reporter.write("R", yellow=True)
        else:
            self._hook.pytest_runtest_logreport(report=report)

    def _logfinish(self, _: Connection, worker: Worker, **content: Any) -> None:
        worker.left.popleft()
        self._hook.pytest_runtest_logfinish(**content)

    def _warning(self, _: Connection, __: Worker, **content: Any) -> None:
        self._hook.pytest_warning_recorded.call_historic(kwargs=content)

    def _error(self, _: Connection, worker: Worker, text: str) -> NoReturn:
        raise RuntimeError(f"in process {worker.number} of the tests:\n{text}")

    def _end(self, _: Connection, worker: Worker) -> None:
        """All went well, and the connection ends next."""

    def _gone(self, connection: Connection, worker: Worker) -> None:
        """A fork has ended. A test in which it was killed has failed, and another fork runs what is left."""
        connection.close()
        del self._running[connection]
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not status:
            return
        assert worker.left, f"process {worker.number} of the tests ended by {status} outside of a test"
        item = self._session.items[worker.left.popleft()]
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"the process of this test ended by {status}",
            when="call",
        )
        self._show(worker, report)
        if worker.left:
            self._lanes[PLAIN].appendleft(list(worker.left))
        self._start(worker.number)

    def _stop(self) -> None:
        """Ends what still runs after an interruption: each fork ends its fixtures first."""
        for connection in self._running:
            connection.close()
        until = time.monotonic() + END_SECONDS
        for worker in self._running.values():
            while not os.waitpid(worker.pid, os.WNOHANG)[0]:
                if time.monotonic() > until:
                    os.kill(worker.pid, signal.SIGKILL)
                time.sleep(0.02)
        self._running.clear()
