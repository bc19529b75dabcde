"""Queues on PostgreSQL beside analytic queries, whose snapshots keep dead rows: this broker and others, in turns."""

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path

import psycopg

from mqbroker.embedded import commands
from mqbroker.embedded.folder import free_port
from tools.bench import broker, filling
from tools.bench.broker import Broker
from tools.bench.checkout import Checkout
from tools.bench.jobs import PER_SECOND
from tools.bench.load import Measured
from tools.bench.machine import tables
from tools.bench.report import Cases, Report

QUERIES, QUERY_SECONDS = 3, 120
# The snapshot is taken before the sleep, and is kept until the end of the sleep.
ANALYTIC = "SELECT sum(c.relpages) FROM pg_class AS c, pg_sleep(%s)"


@dataclass(frozen=True)
class Side:
    """One of the compared queues: its module in `tools.bench.jobs`, its package, and how many processes consume."""

    name: str
    module: str
    package: str | None = None
    consumers: int = 1


SIDES = (
    Side("ours", "ours"),
    Side("pgmq", "pgmq", "pgmq"),
    Side("procrastinate", "procrastinate", "procrastinate"),
    Side("django-tasks-db", "tasks_db", "django-tasks-db", consumers=4),
)


@dataclass
class ReadTimes:
    """Reads the lines that the processes of one role have written since the last look."""

    folder: Path
    role: str
    total: int = 0
    _places: dict[Path, int] = field(default_factory=dict)

    def read(self) -> list[float]:
        """The seconds in each line that was read."""
        found: list[float] = []
        for path in self.folder.glob(f"{self.role}-*.times"):
            with path.open("rb") as file:
                file.seek(self._places.get(path, 0))
                # The last line may be incomplete.
                whole = file.read().rpartition(b"\n")[0]
            self._places[path] = self._places.get(path, 0) + len(whole) + bool(whole)
            found.extend(map(float, whole.split()))
        self.total += len(found)
        return found


@contextlib.contextmanager
def analytic_queries(database_url: str) -> Iterator[None]:
    """Runs overlapping queries within the block, each with a snapshot that is up to two minutes old."""
    over = threading.Event()

    def ask(connection: psycopg.Connection, number: int) -> None:
        over.wait(number * QUERY_SECONDS / QUERIES)
        while not over.is_set():
            with contextlib.suppress(psycopg.errors.QueryCanceled):
                connection.execute(ANALYTIC, (QUERY_SECONDS,))

    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(psycopg.connect(database_url, autocommit=True, application_name="analytics"))
            for _ in range(QUERIES)
        ]
        threads = [threading.Thread(target=ask, args=each) for each in zip(connections, range(QUERIES), strict=True)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            while any(thread.is_alive() for thread in threads):
                # A cancellation between two statements has no effect, so it is repeated.
                for connection in connections:
                    connection.cancel_safe()
                threads[0].join(0.1)


@contextlib.contextmanager
def prepared(side: Side, folder: Path) -> Iterator[Broker]:
    """The processes of one side, except its producers and consumers, on a separate database."""
    if side.package is None:
        with broker.running() as running:
            running.environment |= {"JOBS_FOLDER": str(folder), "JOBS_PORT": str(running.port)}
            yield running
        return
    with broker.database() as url:
        environment = os.environ | {"DATABASE_URL": url, "JOBS_FOLDER": str(folder)}
        running = Broker(free_port(), url, environment, folder)
        try:
            yield running
        finally:
            for name in list(running.processes):
                running.stop(name)


def measure(report: Report, side: Side, minutes: int) -> None:
    """Prints a line for each minute of one side."""
    with (
        tempfile.TemporaryDirectory(prefix="mqbench-") as place,
        prepared(side, Path(place)) as running,
        psycopg.connect(running.database_url, autocommit=True) as connection,
    ):
        words = commands.python("-m", "tools.bench.jobs", side.module)
        subprocess.run([*words, "prepare"], env=running.environment, cwd=running.checkout.root, check=True)
        for number in range(side.consumers):
            running.start(f"consumer {number}", [*words, "consume"])
        with analytic_queries(running.database_url):
            running.start("producer", [*words, "produce"])
            _minutes(report, side, running, connection, minutes)


def _minutes(report: Report, side: Side, running: Broker, connection: psycopg.Connection, minutes: int) -> None:
    folder = Path(running.environment["JOBS_FOLDER"])
    sent, received = ReadTimes(folder, "produce"), ReadTimes(folder, "consume")
    began = time.monotonic()
    for minute in range(1, minutes + 1):
        time.sleep(max(0.0, began + 60 * minute - time.monotonic()))
        if ended := [name for name, process in running.processes.items() if process.poll() is not None]:
            logs = "".join((running.folder / f"{name}.log").read_text()[-2000:] for name in ended)
            raise RuntimeError(f"{side.name}: {', '.join(ended)} ended: {logs}")
        arrived, begun = Measured(60, received.read()), sent.read()
        report.line(
            f"{side.name}, minute {minute}",
            {
                "sent_per_second": len(begun) / 60,
                "received_per_second": arrived.per_second,
                "backlog": max(0, sent.total - received.total),
                **(
                    {"p50_ms": arrived.percentile_ms(50), "p99_ms": arrived.percentile_ms(99)} if received.total else {}
                ),
                **tables(connection),
            },
        )


def main(side: Side, report: Report) -> None:
    """Measures a side for some minutes: backlog, time from due to received, dead rows and bytes of all tables."""
    report.fact("load", f"{PER_SECOND} jobs/s, {QUERIES} overlapping queries of {QUERY_SECONDS} s")
    try:
        version = metadata.version(side.package) if side.package else Checkout().name
    except metadata.PackageNotFoundError:
        report.fact(side.name, f"not installed: `.venv/bin/pip install {side.package}`")
        return
    report.fact(side.name, version)
    measure(report, side, report.options.minutes)


CASES: Cases = {**{side.name: partial(main, side) for side in SIDES}, "filling": filling.main}
