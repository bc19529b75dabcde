"""Cells: the cost of several writers in one process, the growth of rates with the number of cells, and queries to the
control.

Each cell is a separate PostgreSQL; one web process serves all cells. The load is whole transactions of 1 kB to topics
in one, two and four cells, in turns. `one load` has the same number of callers for any number of cells, so each cell
gets smaller batches; `load per cell` has the same number of callers for each cell. `quota` compares three cells with
one if the kernel can limit a server's CPU: each server gets the same small quota, which then limits the rate.
"""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psycopg
from mqbroker_client import Admin
from mqbroker_client import Broker as Client
from mqbroker_client.core.ids import uuid7

from mqbroker.embedded import commands
from mqbroker.embedded.servers.postgres import Server
from tools.bench import broker, load, machine, throughput
from tools.bench.broker import KEY, Broker
from tools.bench.figures import Figures, ratio
from tools.bench.load import Connection
from tools.bench.machine import Database, Used
from tools.bench.report import Report

MOST = 4
# The numbers of cells that each load compares in turns; the first is the base of the ratios.
PARTS = {"one load": (1, 2, MOST), "load per cell": (1, 2, MOST), "quota": (1, 3)}
ONE_LOAD = 64
PER_CELL = 32
QUOTA_CORES = 0.05
# Time to measure the web process's own queries; PostgreSQL's sessions report their counts one second late.
IDLE_SECONDS = 6.0
LATE_SECONDS = 1.5
TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"


@dataclass(frozen=True)
class Cells:
    """A broker with cells, each on its own server: every cell except the control has one topic."""

    running: Broker
    servers: Sequence[Database]
    control: psycopg.Connection

    def measure(self, count: int, callers: int, seconds: float) -> Figures:
        """Runs transactions with `callers` callers on `count` cells in turn. Returns the costs of one transaction."""
        with contextlib.ExitStack() as stack:
            used = [stack.enter_context(server.used()) for server in self.servers]
            web, asked = self.running.cpu_seconds()["web"], self.asked()
            work = load.closed_loop(self.running.port, callers, None, _Transacting(count).transact, seconds)
            measured = load.run(work)
            web = self.running.cpu_seconds()["web"] - web
        if measured.refused or not measured.latencies:
            raise RuntimeError(f"{measured.refused} transactions were refused: the figures mean nothing")
        done = len(measured.latencies)
        time.sleep(LATE_SECONDS)
        return Figures(
            per_second=done / measured.seconds,
            p50_ms=measured.percentile_ms(50),
            p99_ms=measured.percentile_ms(99),
            web_cpu_us=web * 1e6 / done,
            postgres_cpu_us=_cpu_seconds(used) * 1e6 / done,
            wal_bytes=sum(each.wal_bytes for each in used) / done,
            control_asked=(self.asked() - asked) / (measured.seconds + LATE_SECONDS),
        )

    def asked(self) -> int:
        """The number of transactions, including reads, of all sessions at the control so far."""
        name = self.running.database_url.rpartition("/")[2]
        row = self.control.execute(TRANSACTIONS, [name]).fetchone()
        assert row is not None
        return int(row[0])


class _Transacting:
    """The callers of a load, each with a topic of one cell."""

    def __init__(self, count: int) -> None:
        self._topics = [_topic(number) for number in range(count)]
        self._topic_of: dict[Connection, str] = {}

    async def transact(self, connection: Connection, number: int) -> bool:
        """A half message of 1 kB and its commit, which names the topic as the client's commit does."""
        topic = self._topic_of.setdefault(connection, self._topics[len(self._topic_of) % len(self._topics)])
        id_ = str(uuid7())
        half = throughput.half(id_) | {"topic": topic}
        end = {"producer_group": throughput.GROUP, "state": "COMMIT", "topic": topic}
        begun, _ = await connection.ask("POST", "/v1/transactions", msgspec.json.encode(half))
        ended, _ = await connection.ask("POST", f"/v1/transactions/{id_}/end", msgspec.json.encode(end))
        return begun == 201 and ended == 200


def chosen(words: Sequence[str]) -> list[str]:
    """The loads whose names contain one of these words; without words all loads."""
    return [part for part in PARTS if not words or any(word in part for word in words)]


def main(report: Report) -> None:
    """Prints a table for each load, and the ratios to one cell within the rounds."""
    report.fact("machine", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with _cells() as cells:
        cells.measure(MOST, ONE_LOAD, min(throughput.WARM_UP_SECONDS, report.options.seconds))
        before = cells.asked()
        time.sleep(IDLE_SECONDS)
        asked = (cells.asked() - before) / IDLE_SECONDS
        report.line("transactions at the control, without a load", {"per second": asked})
        for part in chosen(report.options.cases):
            with _held(cells) if part == "quota" else contextlib.nullcontext("") as problem:
                if problem:
                    report.fact(part, problem)
                    continue
                for number in range(report.options.rounds):
                    _round(report, cells, part, PARTS[part][:: 1 if number % 2 else -1])
            report.ended(_case(part))


def _round(report: Report, cells: Cells, name: str, counts: Sequence[int]) -> None:
    """Runs one round of a load with each number of cells. Prints rate and CPU as ratios to one cell."""
    report.progress(f"{name}, {', '.join(map(str, counts))} cells")
    found = {
        count: cells.measure(count, ONE_LOAD if name == "one load" else PER_CELL * count, report.options.seconds)
        for count in counts
    }
    for count, figures in sorted(found.items()):
        figures.of_other = ratio(figures.per_second, found[1].per_second)
        figures.cpu_of_other = ratio(found[1].server_cpu_us, figures.server_cpu_us)
        figures.postgres_of_other = ratio(figures.postgres_cpu_us, found[1].postgres_cpu_us)
        report.measured(_case(name), f"{count} cell{'s' if count > 1 else ''}", figures)


def _case(part: str) -> str:
    return f"transactions, {part}"


@contextlib.contextmanager
def _cells() -> Iterator[Cells]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mqbench-cells-")))
        running = stack.enter_context(broker.running(worker=False))
        servers = []
        for number in range(MOST):
            server = stack.enter_context(_started(folder / _name(number)))
            servers.append(Database(stack.enter_context(psycopg.connect(server.url, autocommit=True))))
            _manage(running, "add", _name(number), server.url)
            _manage(running, "open", _name(number))
            Admin(Client(running.url, KEY)).create_topic(_topic(number))
        control = stack.enter_context(psycopg.connect(os.environ["DATABASE_URL"], autocommit=True))
        yield Cells(running, servers, control)


@contextlib.contextmanager
def _started(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _manage(running: Broker, *words: str) -> None:
    subprocess.run(
        commands.manage("cells", *words),
        env=running.environment,
        cwd=commands.ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def _held(cells: Cells) -> Iterator[str]:
    """Limits the CPU of each server to the quota. Yields the reason if the system does not allow it."""
    with contextlib.ExitStack() as stack:
        try:
            for server in cells.servers:
                processes = machine.processes_of_server(server.connection)
                stack.enter_context(machine.quota(processes, QUOTA_CORES))
        except OSError as problem:
            yield f"not measured: no group of processes can be held to a quota here ({problem})"
            return
        yield ""


def _cpu_seconds(used: Sequence[Used]) -> float:
    return sum(each.cpu_seconds for each in used)


def _name(number: int) -> str:
    return f"c{number + 1}"


def _topic(number: int) -> str:
    return f"transactions-{_name(number)}"
