"""The export: each reader compared with Arrow without Spark, increments, and the delay for senders.

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
from tools.bench.report import Report

SIDES = ("limit", "source", "jdbc")
TURNS = 3
INCREMENT = 10_000
RATES = (500, 2000)
# The options for the priority of an export: the default, and normal priority.
MANNERS = ((), ("--nice", "0"))
BY_DEFAULT = "by default"
CONNECTIONS = 32
TOPIC, GROUP = "exported", "exporters"
MEGABYTE = 1024 * 1024

FILL = Path(__file__).with_name("export.sql")
# The statement that vacuums the tables, as autovacuum would have done before a nightly export.
SETTLE = ("VACUUM ANALYZE commit_log", "VACUUM ANALYZE consume_queue", "VACUUM ANALYZE operation")


@dataclass
class Turn:
    """The figures of one run: seconds per step, CPU per kind of process, and memory."""

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


def main(report: Report) -> None:
    """Prints the selected parts: readers, increment, senders."""
    report.fact("machine", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with broker.running(worker=False) as running, psycopg.connect(running.database_url, autocommit=True) as connection:
        load.run(_prepare(running.port))
        fill(connection, report.options.exported)
        report.fact("messages", f"{report.options.exported:,}")
        for name in chosen(report.options.cases):
            PARTS[name](report, running, connection)


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
    # Otherwise the kernel writes the rows at once half a minute later, and commits of that round wait for 40 ms.
    with psycopg.connect(connection.info.dsn, user="postgres", password=connection.info.password) as superuser:
        superuser.execute("CHECKPOINT")


def readers(report: Report, running: Broker, connection: psycopg.Connection) -> None:
    """Runs each reader in turn with Arrow without Spark: prints seconds, ratios within the round, CPU and memory."""
    turns: dict[str, list[Turn]] = {side: [] for side in SIDES}
    for number in range(min(TURNS, report.options.rounds)):
        for side in SIDES if number % 2 == 0 else reversed(SIDES):
            turns[side].append(_turn(side, report, running, connection))
            load_now, turn = os.getloadavg()[0], turns[side][-1]
            report.progress(f"turn {number + 1}, {side}, load {load_now:.1f}: {turn}")
    for side, found in turns.items():
        report.line(side, _medians(found, turns["limit"]))


def _turn(side: str, report: Report, running: Broker, connection: psycopg.Connection) -> Turn:
    with _scratch() as folder:
        words = commands.python("-m", "tools.bench.programs.exports", side, str(folder))
        before = cpu_of_server(connection)
        printed, use = processes.watched(words, running.environment, commands.ROOT)
        server = cpu_of_server(connection) - before
    seconds = msgspec.json.decode(printed, type=dict[str, float])
    return Turn(seconds, {**use.cpu_seconds, "postgres": server}, use.peak_bytes / MEGABYTE)


def _medians(turns: list[Turn], limits: list[Turn]) -> dict[str, float]:
    names = {f"{name}_s": median(turn.seconds[name] for turn in turns) for name in turns[0].seconds}
    pairs = list(zip(turns, limits, strict=True))
    ratios = {
        "messages_of_limit": median(turn.messages / limit.messages for turn, limit in pairs),
        "tables_of_limit": median(turn.tables / limit.tables for turn, limit in pairs),
    }
    return {**names, **ratios, **_cpu(turns), "peak_mb": max(turn.peak_mb for turn in turns)}


def increment(report: Report, running: Broker, connection: psycopg.Connection) -> None:
    """Measures the whole command for an increment, after an export of all earlier messages."""
    with _scratch() as folder:
        exports = [_exported(running, connection, folder / "export")]
        for number in range(min(TURNS, report.options.rounds)):
            fill(connection, INCREMENT)
            exports.append(_exported(running, connection, folder / "export"))
            report.progress(f"increment {number + 1}, load {os.getloadavg()[0]:.1f}: {exports[-1]}")
    report.line("all of them, by the command in all", _of_commands(exports[:1]))
    report.line(f"the next {INCREMENT:,}, by the command in all", _of_commands(exports[1:]))


def _exported(running: Broker, connection: psycopg.Connection, to: Path) -> Turn:
    before, began = cpu_of_server(connection), time.perf_counter()
    printed, use = processes.watched(_command(to), running.environment, commands.ROOT)
    seconds = {"command": time.perf_counter() - began}
    sys.stderr.write(printed)
    return Turn(seconds, {**use.cpu_seconds, "postgres": cpu_of_server(connection) - before}, use.peak_bytes / MEGABYTE)


def _of_commands(turns: list[Turn]) -> dict[str, float]:
    seconds = [turn.seconds["command"] for turn in turns]
    return {
        "seconds": median(seconds),
        "slowest_s": max(seconds),
        **_cpu(turns),
        "peak_mb": max(turn.peak_mb for turn in turns),
    }


def _cpu(turns: list[Turn]) -> dict[str, float]:
    kinds = ("command", "java", "workers", "postgres")
    return {f"{kind}_cpu_s": median(turn.cpu_seconds.get(kind, 0.0) for turn in turns) for kind in kinds}


def _command(to: Path, *words: str) -> list[str]:
    return commands.manage("export", "--to", str(to), *words)


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


def senders(rate: int, words: Sequence[str], report: Report, running: Broker, connection: psycopg.Connection) -> None:
    """Latencies of a steady load during exports, with idle periods in between.

    The first export is a complete one. Each later export adds the messages sent since the one before, as a nightly
    export does: so all rounds export about the same amount, while complete exports would grow.
    """
    with _scratch() as folder:
        to = folder / "export"
        whole = _during(running, rate, to, words)
        # The second export belongs to no round: its duration only sets the length of the first idle period.
        idle = _idle(running, rate, _during(running, rate, to, words).seconds)
        rounds: list[Round] = []
        for number in range(report.options.rounds):
            during = _during(running, rate, to, words)
            rounds.append(Round(idle, during, idle := _idle(running, rate, during.seconds)))
            report.progress(f"round {number + 1}, load {os.getloadavg()[0]:.1f}: {_of_rounds(rounds[-1:])}")
    whole_export = {"whole_p99_ms": whole.percentile_ms(99), "whole_s": whole.seconds}
    report.line(f"senders at {rate}/s, export {' '.join(words) or BY_DEFAULT}", _of_rounds(rounds) | whole_export)


def _idle(running: Broker, rate: int, seconds: float) -> Measured:
    """Sends without an export for as long as the previous export took."""
    _settle()
    return load.run(_steady(running.port, rate, lambda passed: passed < seconds))


def _during(running: Broker, rate: int, to: Path, words: Sequence[str]) -> Measured:
    _settle()
    with _in_background(running, to, words) as export:
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


def _of_rounds(rounds: Sequence[Round]) -> dict[str, float]:
    """Medians over the rounds. `sends` is the smallest number of sends behind a p99."""
    ratios = [one.during_ms / one.idle_ms for one in rounds]
    return {
        "idle_p99_ms": median(one.idle_ms for one in rounds),
        "during_p99_ms": median(one.during_ms for one in rounds),
        "ratio": median(ratios),
        "worst_ratio": max(ratios),
        "idle_p50_ms": median(one.before.percentile_ms(50) for one in rounds),
        "during_p50_ms": median(one.during.percentile_ms(50) for one in rounds),
        "export_s": median(one.during.seconds for one in rounds),
        "sends": min(len(side.latencies) for one in rounds for side in (one.before, one.during, one.after)),
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
def _in_background(running: Broker, to: Path, words: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        _command(to, *words), env=running.environment, cwd=commands.ROOT, stdout=sys.stderr
    ) as export:
        try:
            yield export
        finally:
            export.kill() if export.poll() is None else None


PARTS: dict[str, Callable[[Report, Broker, psycopg.Connection], None]] = {
    "readers": readers,
    "increment": increment,
    **{
        f"senders at {rate}/s, {' '.join(words) or BY_DEFAULT}": partial(senders, rate, words)
        for rate in RATES
        for words in MANNERS
    },
}


def chosen(words: Sequence[str]) -> list[str]:
    """The parts whose names contain one of these words; without words all parts."""
    return [name for name in PARTS if not words or any(word in name for word in words)]


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mqbench-") as folder:
        yield Path(folder)
