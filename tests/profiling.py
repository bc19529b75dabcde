"""A plugin that notes where a run of the tests spends its time: `./mq test --profile FILE` names it and the file.

The file has a table by test file, by fixture and by lane: what one process runs alone takes at least the wall seconds
of its lane.

A thread of each process of the tests looks at the processes below it, and at those of its fork server, and adds what
has come since its last look to the test file, and to the fixture, that is at work. What a process does between the
last look and its end is found in its parent, which has waited for it.
"""

import contextlib
import json
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, SupportsIndex

import pytest

from tests.broker import forks
from tests.lanes import own_lane_of

LOOK_SECONDS, LEAST_SECONDS = 0.4, 0.1
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
# A process is counted by the first of these words in its name or command.
KINDS = {
    "web": ("mqbroker.web",),
    # A worker or beat: the system keeps 15 characters of a name.
    "celery": ("mqbroker.celery",),
    "java": ("java",),
    "chromium": ("chromium",),
    "rabbitmq": ("beam.smp",),
    "mariadb": ("mariadbd",),
    "postgres": ("postgres",),
    "pytest": ("pytest",),
}
FILE_VARIABLE = "MQ_PROFILE_OF_TESTS"


def servers() -> Iterator[int]:
    """The private servers of this process, which `./mq test` has started: their commands name the data folder."""
    folder = os.environ["MQBROKER_DATA_DIR"].encode()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and folder in Path(f"/proc/{entry}/cmdline").read_bytes():
                yield int(entry)


class Process:
    """What a look at /proc shows of a process: its parent, its processor seconds, those of ended children included."""

    def __init__(self, pid: int) -> None:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        fields = rest.split()
        self.pid = pid
        self.name = name.partition("(")[2]
        self.parent = int(fields[1])
        self.cpu_seconds = sum(map(int, fields[11:15])) * TICK_SECONDS
        self.started = int(fields[19])


def processes() -> Iterator[Process]:
    """All processes of the machine."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                yield Process(int(entry))
            except (OSError, IndexError, ValueError):
                continue


def kind(process: Process) -> str | None:
    """What a process is, if it is one that is dear to start. PostgreSQL's counts as its first process alone."""
    try:
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    for found, words in KINDS.items():
        if any(word in process.name for word in words) or any(word in command.partition(" ")[0] for word in words):
            if found == "postgres" and (" -D " not in command or is_session(process)):
                return None
            return None if found == "chromium" and "--type=" in command else found
    return None


def is_session(process: Process) -> bool:
    """Whether a process of PostgreSQL is a fork of the first one, whose command it shows until it names itself."""
    try:
        return Path(f"/proc/{process.parent}/comm").read_text() == "postgres\n"
    except OSError:
        return True


class Profile:
    """What one process of the tests has spent, by file and by fixture."""

    def __init__(self, part: Path) -> None:
        self._part = part
        self._roots = {os.getpid(), *servers()}
        self._place = ("(set-up)", "")
        self._seen: dict[tuple[int, int], float] = {}
        self._spent: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
        # Of the test that is at work.
        self.lane = ""
        self._at = time.monotonic()
        self._lock = threading.Lock()
        self.waited = 0.0
        self._leave_out_the_past()
        threading.Thread(target=self._look_again, daemon=True).start()

    def add_root(self, pid: int) -> None:
        """Counts a process beside this one, and all below it, as this one's."""
        if pid not in self._roots:
            self._roots.add(pid)
            self._leave_out_the_past()

    def at(self, file: str, fixture: str = "") -> tuple[str, str]:
        """Notes where the next is spent, and what has been spent until now; gives the place before.

        A look takes some milliseconds: what is done at once is counted with what follows.
        """
        before = self._place
        if before != (file, fixture):
            if time.monotonic() - self._at > LEAST_SECONDS:
                self.look()
            self._place = (file, fixture)
        return before

    def look(self) -> None:
        """Adds what has come since the last look to the place that is at work."""
        with self._lock:
            spent = self._spent[*self._place, self.lane]
            now = time.monotonic()
            spent["wall_seconds"] += now - self._at  # type: ignore[assignment]  # a counter of seconds
            spent["waited_seconds"] += self.waited  # type: ignore[assignment]  # the same
            self._at, self.waited = now, 0.0
            below = self._below()
            total = 0.0
            for process in below:
                key = (process.pid, process.started)
                if key not in self._seen and (found := kind(process)):
                    spent[found] += 1
                total += process.cpu_seconds
            gone = sum(seconds for key, seconds in self._seen.items())
            spent["cpu_seconds"] += max(0.0, total - gone)  # type: ignore[assignment]  # as above
            self._seen = {(process.pid, process.started): process.cpu_seconds for process in below}

    def write(self) -> None:
        """Writes all that has been noted; once more whenever a file ends, since a fork is not told of its own end."""
        self.look()
        rows = [[*place, dict(spent)] for place, spent in self._spent.items()]
        self._part.write_text(json.dumps(rows))

    def _leave_out_the_past(self) -> None:
        """Leaves out what servers have used before they were this process's: for an earlier process of the tests."""
        with self._lock:
            for process in self._below():
                if process.pid != os.getpid():
                    self._seen.setdefault((process.pid, process.started), process.cpu_seconds)

    def _below(self) -> list[Process]:
        found = list(processes())
        children: dict[int, list[Process]] = defaultdict(list)
        for process in found:
            children[process.parent].append(process)
        below = [process for process in found if process.pid in self._roots]
        for process in below:
            below.extend(child for child in children[process.pid] if child.pid not in self._roots)
        return below

    def _look_again(self) -> None:
        while True:
            REAL_SLEEP(LOOK_SECONDS)
            self.look()


REAL_SLEEP = time.sleep
_profiles: dict[int, Profile] = {}


def current() -> Profile:
    """The one of this process: a fork begins one of its own."""
    pid = os.getpid()
    if pid not in _profiles:
        _profiles.clear()
        _profiles[pid] = Profile(Path(f"{os.environ[FILE_VARIABLE]}.{pid}.part"))
        time.sleep = sleep_and_count
    return _profiles[pid]


def sleep_and_count(seconds: float | SupportsIndex, /) -> None:
    """`time.sleep`, which in the thread of the tests counts as waiting."""
    if threading.current_thread() is threading.main_thread():
        current().waited += float(seconds)
    REAL_SLEEP(seconds)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    file = item.nodeid.partition("::")[0]
    profile = current()
    for server in forks._servers.values():
        profile.add_root(server.pid)
    profile.at(file)
    profile.lane = own_lane_of(item) or "any"
    result = yield
    profile.write()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    profile = current()
    before = profile.at(request.node.nodeid.partition("::")[0] or "(session)", fixturedef.argname)
    try:
        return (yield)
    finally:
        profile.at(*before)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Adds the parts of all processes and writes the table."""
    target = Path(os.environ[FILE_VARIABLE])
    files: dict[str, Counter[str]] = defaultdict(Counter)
    fixtures: dict[str, Counter[str]] = defaultdict(Counter)
    lanes: dict[str, Counter[str]] = defaultdict(Counter)
    for part in target.parent.glob(f"{target.name}.*.part"):
        for file, fixture, lane, spent in json.loads(part.read_text()):
            files[file].update(spent)
            lanes[lane].update(spent)
            if fixture:
                fixtures[fixture].update(spent)
        part.unlink()
    tables = [*table("file", files), "", *table("fixture", fixtures), "", *table("lane", lanes), ""]
    target.write_text("\n".join(tables))
    terminalreporter.write_line(f"Where the time went is in {target}.")


def table(title: str, spent: dict[str, Counter[str]]) -> Iterator[str]:
    """The lines of a table with tabs between its columns, what took most of the processor first."""
    seconds = ("cpu_seconds", "wall_seconds", "waited_seconds")
    yield "\t".join([title, *seconds, *KINDS])
    for name, row in sorted(spent.items(), key=lambda each: -each[1]["cpu_seconds"]):
        yield "\t".join([name, *(f"{row[each]:.1f}" for each in seconds), *(str(row[each]) for each in KINDS)])
    total = sum(spent.values(), Counter())
    yield "\t".join(["in all", *(f"{total[each]:.1f}" for each in seconds), *(str(total[each]) for each in KINDS)])
