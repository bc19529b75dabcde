"""The export: each reader compared with Arrow without Spark, and the delay for senders.

The readers run in turns, each in its own process, on messages of 1 kB of hexadecimal digits with properties, with one
entry per message and a transaction for every second message.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median

import msgspec
import psycopg

from mqbroker.embedded import commands
from tools.bench import broker, load, processes, throughput
from tools.bench.broker import Broker
from tools.bench.load import Connection, Measured
from tools.bench.machine import cpu_of_server
from tools.bench.report import Cases, Report
from tools.bench.turns import rounds

SIDES = ("limit", "source", "jdbc")
MESSAGES = 100_000
RATES = (500, 2000)
CONNECTIONS = 32
TOPIC, GROUP = "exported", "exporters"
MEGABYTE = 1024 * 1024

FILL = Path(__file__).with_name("export.sql")
# The statement that vacuums the tables, as autovacuum would have done before a nightly export.
SETTLE = ("VACUUM ANALYZE commit_log", "VACUUM ANALYZE consume_queue", "VACUUM ANALYZE operation")


@dataclass
class Turn:
    """The figures of one reader: seconds per step, CPU seconds per kind of process, and memory."""

    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    peak_mb: float

    @property
    def messages(self) -> float:
        return self.seconds["messages"]

    @property
    def tables(self) -> float:
        """The seconds of all steps except the start of the session."""
        return sum(seconds for name, seconds in self.seconds.items() if name != "session")


Part = Callable[[Report, Broker, psycopg.Connection], None]


def main(part: Part, report: Report) -> None:
    """Measures one part on a broker with `--messages`."""
    messages = report.options.messages or MESSAGES
    with broker.running(worker=False) as running, psycopg.connect(running.database_url, autocommit=True) as connection:
        load.run(_prepare(running.port))
        fill(connection, messages)
        report.fact("messages", f"{messages:,}")
        part(report, running, connection)


async def _prepare(port: int) -> None:
    connection = await Connection.open(port)
    for path in (f"/v1/topics/{TOPIC}", f"/v1/producer-groups/{GROUP}", "/v1/topics/sends"):
        status, answer = await connection.ask("PUT", path, b"{}")
        assert status in (200, 201), answer
    connection.close()


def fill(connection: psycopg.Connection, messages: int) -> None:
    """Stores messages with their entries and transactions, by one statement."""
    connection.execute("SET statement_timeout = 0")
    connection.execute(FILL.read_bytes(), {"topic": TOPIC, "group": GROUP, "messages": messages})
    for statement in SETTLE:
        connection.execute(statement.encode())
    # Otherwise the kernel would write the rows half a minute later, and commits of that round would wait for 40 ms.
    with psycopg.connect(connection.info.dsn, user="postgres", password=connection.info.password) as superuser:
        superuser.execute("CHECKPOINT")


def readers(report: Report, running: Broker, connection: psycopg.Connection) -> None:
    """Runs each reader in turn with Arrow without Spark: prints seconds, ratios within the round, CPU and memory."""
    measured: dict[str, list[Turn]] = {side: [] for side in SIDES}
    for order in rounds(report, "readers", SIDES):
        for side in order:
            with _scratch() as folder:
                words = commands.python("-m", "tools.bench.programs.exports", side, str(folder))
                before = cpu_of_server(connection)
                printed, use = processes.watched(words, running.environment, commands.ROOT)
                cpu = {**use.cpu_seconds, "postgres": cpu_of_server(connection) - before}
            seconds = msgspec.json.decode(printed, type=dict[str, float])
            measured[side].append(Turn(seconds, cpu, use.peak_bytes / MEGABYTE))
            report.progress(f"{side}: {measured[side][-1]}")
    for side, turns in measured.items():
        report.line(side, _medians(turns, measured["limit"]))


def _medians(turns: list[Turn], limits: list[Turn]) -> dict[str, float]:
    names = {f"{name}_s": median(turn.seconds[name] for turn in turns) for name in turns[0].seconds}
    pairs = list(zip(turns, limits, strict=True))
    ratios = {
        "messages_of_limit": median(turn.messages / limit.messages for turn, limit in pairs),
        "tables_of_limit": median(turn.tables / limit.tables for turn, limit in pairs),
    }
    kinds = ("command", "java", "workers", "postgres")
    cpu = {f"{kind}_cpu_s": median(turn.cpu_seconds.get(kind, 0.0) for turn in turns) for kind in kinds}
    return {**names, **ratios, **cpu, "peak_mb": max(turn.peak_mb for turn in turns)}


@dataclass
class Round:
    """Latencies of senders during an export, and in the idle periods before and after it."""

    before: Measured
    during: Measured
    after: Measured

    @property
    def idle_ms(self) -> float:
        """The p99 of senders without an export, in milliseconds."""
        return mean((self.before.percentile_ms(99), self.after.percentile_ms(99)))

    @property
    def during_ms(self) -> float:
        """The p99 of senders during the export, in milliseconds."""
        return self.during.percentile_ms(99)


def senders(rate: int, report: Report, running: Broker, connection: psycopg.Connection) -> None:
    """Latencies of a steady load during exports, with idle periods in between.

    The first export is a complete one. Each later export adds the messages sent since the one before, as a nightly
    export does: so all rounds export about the same amount, while complete exports would grow.
    """
    with _scratch() as folder:
        to = folder / "export"
        whole = _during(running, rate, to)
        # The second export belongs to no round: its duration only sets the length of the first idle period.
        idle = _idle(running, rate, _during(running, rate, to).seconds)
        found: list[Round] = []
        for _ in rounds(report, f"senders at {rate}/s", ()):
            during = _during(running, rate, to)
            found.append(Round(idle, during, idle := _idle(running, rate, during.seconds)))
            report.progress(str(_of_rounds(found[-1:])))
    whole_export = {"whole_p99_ms": whole.percentile_ms(99), "whole_s": whole.seconds}
    report.line(f"senders at {rate}/s beside an export", _of_rounds(found) | whole_export)


def _idle(running: Broker, rate: int, seconds: float) -> Measured:
    """Sends without an export for as long as the previous export took."""
    _settle()
    return load.run(_steady(running.port, rate, lambda passed: passed < seconds))


def _during(running: Broker, rate: int, to: Path) -> Measured:
    _settle()
    with _in_background(running, to) as export:
        during = load.run(_steady(running.port, rate, lambda _: export.poll() is None))
    if export.returncode:
        raise RuntimeError(f"the export ended with {export.returncode}")
    return during


def _settle() -> None:
    """Makes the system write everything to the disk before a round.

    The kernel writes the broker's pages half a minute after they changed, 150 MB at once, and commits wait for it.
    Without this call, in four of five rounds the pages of an idle period were written during the following export.
    """
    os.sync()


def _of_rounds(found: Sequence[Round]) -> dict[str, float]:
    """Medians over the rounds. `sends` is the smallest number of sends behind a p99."""
    ratios = [one.during_ms / one.idle_ms for one in found]
    return {
        "idle_p99_ms": median(one.idle_ms for one in found),
        "during_p99_ms": median(one.during_ms for one in found),
        "ratio": median(ratios),
        "worst_ratio": max(ratios),
        "idle_p50_ms": median(one.before.percentile_ms(50) for one in found),
        "during_p50_ms": median(one.during.percentile_ms(50) for one in found),
        "export_s": median(one.during.seconds for one in found),
        "sends": min(len(side.latencies) for one in found for side in (one.before, one.during, one.after)),
    }


async def _steady(port: int, rate: int, goes_on: Callable[[float], bool]) -> Measured:
    """Sends at a fixed rate. Latencies count from the time a send was due, even if the answer before it was late."""
    connections = [await Connection.open(port) for _ in range(CONNECTIONS)]
    measured, began = Measured(), time.perf_counter()

    async def client(number: int, connection: Connection) -> None:
        due = began + number / rate
        while goes_on(time.perf_counter() - began):
            await asyncio.sleep(due - time.perf_counter())
            if await throughput.send(connection, number):
                measured.latencies.append(time.perf_counter() - due)
            else:
                measured.refused += 1
            due += CONNECTIONS / rate

    await asyncio.gather(*(client(number, connection) for number, connection in enumerate(connections)))
    measured.seconds = time.perf_counter() - began
    for connection in connections:
        connection.close()
    return measured


@contextlib.contextmanager
def _in_background(running: Broker, to: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = commands.manage("export", "--to", str(to))
    with subprocess.Popen(command, env=running.environment, cwd=commands.ROOT, stdout=sys.stderr) as export:
        try:
            yield export
        finally:
            export.kill() if export.poll() is None else None


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mqbench-") as folder:
        yield Path(folder)


PARTS: dict[str, Part] = {"readers": readers, **{f"senders at {rate}/s": partial(senders, rate) for rate in RATES}}
CASES: Cases = {name: partial(main, part) for name, part in PARTS.items()}
