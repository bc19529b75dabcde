"""The characters of the task backend's tests: a Django project with databases and workers."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import psycopg
import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from tests.barrier import places
from tests.broker import characters, deliveries, forks
from tests.broker.forks import ForkedChild
from tests.broker.polling import eventually
from tests.broker.receiving import let_deliveries_expire
from tests.broker.running import API_KEY, RunningBroker

# The Python of the project: another one may have another version of Django.
PYTHON = os.environ.get("MQ_DJANGO_PYTHON", sys.executable)
PLACES = ("postgresql", "mariadb", "sqlite")


@dataclass
class Project:
    """A Django project, whose programs are processes."""

    broker: RunningBroker
    databases: Mapping[str, str]
    folder: Path
    more: Mapping[str, Any] = field(default_factory=dict)
    group: str = field(default_factory=lambda: characters.name("shop"))
    program: ForkedChild | None = None
    _lines: TextIO | None = None

    @property
    def environment(self) -> dict[str, str]:
        given = {"databases": dict(self.databases), "group": self.group, **self.more}
        return os.environ | {
            "MQBROKER_URL": self.broker.url,
            "MQBROKER_API_KEY": API_KEY,
            "DJANGO_SETTINGS_MODULE": "tests.task_backend.project.settings",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "client")]),
            "PROJECT": json.dumps(given),
            "PROJECT_FOLDER": str(self.folder),
        }

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command that ends."""
        command = [PYTHON, "-m", "django", *words]
        return forks.run(command, self.environment)

    def tell(self, story: str, *arguments: Any) -> Any:
        """What a story returns, which the project's program does."""
        lines = self._lines or self._start()
        print(json.dumps([story, *arguments]), file=lines, flush=True)
        if not (line := lines.readline()):
            program = self.program
            self.close()
            assert program is not None
            assert program.returncode == -signal.SIGKILL, f"the story failed:\n{program.last_lines()}"
        return json.loads(line or "null")

    def _start(self) -> TextIO:
        """Starts the program, which ends when the connection is closed; returns the connection to it."""
        place = self.folder / "stories"
        place.unlink(missing_ok=True)
        command = [PYTHON, "-m", "tests.task_backend.project", "stories", str(place)]
        self.program = ForkedChild("stories", command, self.environment, self.folder / "stories.log", ROOT)
        self.program.start()

        def connected() -> TextIO | None:
            with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(place))
                return connection.makefile("rw")
            return None

        self._lines = eventually(connected)
        return self._lines

    def close(self) -> None:
        """Ends the program."""
        if self._lines is not None and self.program is not None:
            self._lines.close()
            self._lines = None
            assert self.program.wait(60), self.program.last_lines()

    def worker(self, *words: str) -> Child:
        """A worker, to be started."""
        command = [PYTHON, "-m", "django", "mq_worker", *words]
        return ForkedChild("worker", command, self.environment, self.folder / "worker.log", ROOT, stop_seconds=30)

    @contextmanager
    def working(self, *words: str) -> Iterator[Child]:
        """A worker that runs."""
        worker = self.worker(*words)
        worker.start()
        try:
            yield worker
        finally:
            worker.stop()

    def let_deliveries_expire(self) -> None:
        """Lets the time of all tasks be over that a dead worker had."""
        let_deliveries_expire(self.broker, f"{self.group}-default", f"{self.group}-tasks")

    def unsettled(self) -> tuple[object, ...]:
        """What the broker has of the project's tasks: undecided ones, and those that wait, are retried, are in flight.

        In the order in which a task passes them: none is missed between two looks.
        """
        wire, readers = self.broker.wire(), f"{self.group}-tasks"
        pending = wire.get(f"/v1/producer-groups/{self.group}").document["pending"]
        group = wire.get(f"/v1/consumer-groups/{readers}").document
        lag = sum(each["lag"] for each in group["lag"])
        with psycopg.connect(self.broker.database_of(f"{self.group}-default"), autocommit=True) as session:
            in_flight = deliveries.count(session, readers)
        return (pending, lag, group["retrying"]["messages"], in_flight)

    def runs(self, count: int, using: str = "default") -> list[str]:
        """What the runs of tasks were about, once there are so many."""

        def found() -> list[str] | None:
            runs: list[str] = self.tell("runs", using)
            return runs if len(runs) >= count else None

        return eventually(found, within_seconds=120)

    def ended(self, id_: str) -> dict[str, Any]:
        """The result of a task that has ended."""

        def found() -> dict[str, Any] | None:
            result: dict[str, Any] = self.tell("result", id_)
            return result if result["status"] in ("SUCCESSFUL", "FAILED") else None

        return eventually(found, within_seconds=120)


@contextmanager
def migrated(
    broker: RunningBroker, url: str, folder: Path, *, other: str | None = None, **more: Any
) -> Iterator[Project]:
    """A project with its tables in this database and in another one, by default of SQLite."""
    if other is None:
        (folder / "more").mkdir()
        other = places.sqlite(folder / "more").url
    project = Project(broker, {"default": url, "other": other}, folder, more)
    project.tell("migrate")
    yield project
    project.close()


@pytest.fixture
def project(broker: RunningBroker, tmp_path: Path) -> Iterator[Project]:
    """A project on PostgreSQL."""
    with places.postgresql("read committed") as place, migrated(broker, place.url, tmp_path) as project:
        yield project


@pytest.fixture(params=PLACES)
def anywhere(request: pytest.FixtureRequest, broker: RunningBroker, tmp_path: Path) -> Iterator[Project]:
    """A project on each kind of database."""
    if request.param == "postgresql":
        yield request.getfixturevalue("project")
    elif request.param == "sqlite":
        with migrated(broker, places.sqlite(tmp_path).url, tmp_path) as project:
            yield project
    else:
        server = request.getfixturevalue("mariadb_server")
        with places.of_mariadb(server) as place, migrated(broker, place.url, tmp_path) as project:
            yield project
