"""Cells: the cost of several writers in one process, and how rates grow with the number of cells.

Each cell has its own PostgreSQL; one web process serves all cells. The load is whole transactions of 1 kB to a topic in
each of one, two and four cells.
"""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
from mqbroker_client import Admin
from mqbroker_client import Broker as Client
from mqbroker_client.core.ids import uuid7

from mqbroker.embedded import commands
from mqbroker.embedded.servers.postgres import Server
from tools.bench import broker, load
from tools.bench.broker import KEY, Broker
from tools.bench.figures import Figures
from tools.bench.load import Connection
from tools.bench.report import Cases, Report
from tools.bench.turns import in_turns, measure

COUNTS = (1, 2, 4)
# The number of callers for each number of cells.
CALLERS = {
    "cells, 64 callers in all": dict.fromkeys(COUNTS, 64),
    "cells, 32 callers per cell": {count: 32 * count for count in COUNTS},
}
GROUP = "bench"


@dataclass(frozen=True)
class Cells:
    """A broker with cells, each with one topic; the control has none."""

    running: Broker
    servers: list[str]

    def measure(self, count: int, callers: int, seconds: float) -> Figures:
        """Runs transactions on this number of cells."""

        async def transact(connection: Connection, number: int) -> bool:
            id_, topic = str(uuid7()), _topic(number % count)
            half = {"topic": topic, "body": "x" * 1000, "producer_group": GROUP, "transaction_id": id_}
            # The end names the topic, like the client's commit.
            end = {"producer_group": GROUP, "state": "COMMIT", "topic": topic}
            begun, _ = await connection.ask("POST", "/v1/transactions", msgspec.json.encode(half))
            ended, _ = await connection.ask("POST", f"/v1/transactions/{id_}/end", msgspec.json.encode(end))
            return begun == 201 and ended == 200

        work = load.closed_loop(self.running.port, callers, None, transact, seconds)
        return measure(self.running, lambda: load.run(work), servers=self.servers)


def main(case: str, callers: dict[int, int], report: Report) -> None:
    """Prints the figures for each number of cells, and the ratios to one cell."""
    seconds = report.options.seconds
    with _cells() as cells:
        cells.measure(max(COUNTS), callers[1], min(2.0, seconds))
        sides = {_named(count): partial(cells.measure, count, callers[count], seconds) for count in COUNTS}
        in_turns(report, case, sides, _named(1))


def _named(count: int) -> str:
    return f"{count} cell{'s' if count > 1 else ''}"


@contextlib.contextmanager
def _cells() -> Iterator[Cells]:
    with tempfile.TemporaryDirectory(prefix="mqbench-cells-") as folder, broker.running(worker=False) as running:
        servers = {f"c{number}": Server(Path(folder) / f"c{number}") for number in range(1, max(COUNTS) + 1)}
        try:
            for number, (name, server) in enumerate(servers.items()):
                server.start()
                _manage(running, "add", name, server.url)
                _manage(running, "open", name)
                Admin(Client(running.url, KEY)).create_topic(_topic(number))
            yield Cells(running, [server.url for server in servers.values()])
        finally:
            for server in servers.values():
                server.stop()


def _manage(running: Broker, *words: str) -> None:
    command = commands.manage("cells", *words)
    subprocess.run(command, env=running.environment, cwd=commands.ROOT, check=True, stdout=subprocess.DEVNULL)


def _topic(number: int) -> str:
    return f"transactions-{number}"


CASES: Cases = {case: partial(main, case, callers) for case, callers in CALLERS.items()}
