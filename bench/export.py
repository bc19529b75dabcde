"""The export: each reader beside what Arrow does without Spark, the next messages, and what senders notice.

The sides run in turns, each in a process of its own, on messages of 1 kB of hexadecimal digits with properties, as many
entries, and a transaction for every second one.
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
from pathlib import Path
from statistics import median

import msgspec
import psycopg

from bench import broker, load, processes, throughput
from bench.broker import Broker
from bench.load import Connection, Measured
from bench.machine import cpu_of_server
from bench.report import Report
from embedded import commands

SIDES = ("limit", "source", "jdbc")
TURNS = 3
INCREMENT = 10_000
RATES = (500, 2000)
# How an export gives way, from the default on.
MANNERS = {"by default": (), "with --nice 0": ("--nice", "0")}
CONNECTIONS = 32
IDLE_SECONDS = 10.0
SETTLE_SECONDS = 2.0
TOPIC, GROUP = "exported", "exporters"
MEGABYTE = 1024 * 1024

FILL = """
WITH place AS MATERIALIZED (
    SELECT
        (SELECT id FROM segment WHERE state = 'open') AS segment_id,
        (SELECT id FROM topic WHERE name = %(topic)s) AS topic_id,
        (SELECT id FROM producer_group WHERE name = %(group)s) AS group_id
),

-- Before the first new row: a look for each of them would pass all that were written before it.
tail AS MATERIALIZED (
    SELECT q AS queue_id, coalesce(max(c.queue_offset), -1) AS queue_offset
    FROM place AS p
    CROSS JOIN generate_series(0, 3) AS q
    LEFT JOIN consume_queue AS c ON (c.segment_id, c.topic_id, c.queue_id) = (p.segment_id, p.topic_id, q)
    GROUP BY q
),

stored AS (
    INSERT INTO commit_log (
        segment_id, log_offset, stored_at, topic_id, queue_id, message_id, transaction_id, producer_group_id,
        properties, body, body_form
    )
    SELECT
        p.segment_id, nextval('commit_log_offset'), now(), p.topic_id, n %% 4, gen_random_uuid(),
        CASE WHEN n %% 2 = 0 THEN gen_random_uuid() END, CASE WHEN n %% 2 = 0 THEN p.group_id END,
        convert_to(format('{"number":"%%s","source":"shop"}', n), 'UTF8'), b.body, 'text'
    FROM place AS p
    CROSS JOIN generate_series(1, %(messages)s) AS n
    CROSS JOIN LATERAL (
        SELECT convert_to(string_agg(encode(sha512(convert_to(format('%%s:%%s', n, part), 'UTF8')), 'hex'), ''), 'UTF8')
        FROM generate_series(1, 8) AS part
    ) AS b (body)
    RETURNING segment_id, log_offset, topic_id, queue_id, message_id, transaction_id, producer_group_id
),

entered AS (
    INSERT INTO consume_queue (
        segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at
    )
    SELECT
        s.segment_id, s.topic_id, s.queue_id,
        t.queue_offset + row_number() OVER (PARTITION BY s.queue_id ORDER BY s.log_offset), s.segment_id, s.log_offset,
        0, 0, now()
    FROM stored AS s
    INNER JOIN tail AS t USING (queue_id)
)

INSERT INTO operation (
    segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
    stored_at, log_segment, log_offsets, message_ids, topic_ids, queue_ids
)
SELECT
    s.segment_id, nextval('operation_id'), s.transaction_id, s.producer_group_id, 'COMMIT', 'producer', now(), 0,
    now(), s.segment_id, ARRAY[s.log_offset], ARRAY[s.message_id], ARRAY[s.topic_id], ARRAY[s.queue_id]
FROM stored AS s
WHERE s.transaction_id IS NOT NULL
"""
# As autovacuum would have done by the time of a nightly export.
SETTLE = ("VACUUM ANALYZE commit_log", "VACUUM ANALYZE consume_queue", "VACUUM ANALYZE operation")


@dataclass
class Turn:
    """One side's turn: seconds by what was done, CPU by kind of process, and memory."""

    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    peak_mb: float

    @property
    def messages(self) -> float:
        return self.seconds["messages"]

    @property
    def tables(self) -> float:
        """Everything but the start of the session."""
        return sum(seconds for name, seconds in self.seconds.items() if name != "session")


def main(report: Report) -> None:
    """Prints the parts that are chosen: readers, increment, senders."""
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
    """Stores messages with their entries and transactions by one statement."""
    connection.execute("SET statement_timeout = 0")
    connection.execute(FILL.encode(), {"topic": TOPIC, "group": GROUP, "messages": messages})
    for statement in SETTLE:
        connection.execute(statement.encode())


def readers(report: Report, running: Broker, connection: psycopg.Connection) -> None:
    """Each reader in turns with the limit: seconds, ratios within the turn, CPU and memory."""
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
        words = commands.python("-m", "bench.programs.exports", side, str(folder))
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
    """The whole command for the next messages, behind an export of all the others."""
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


def senders(report: Report, running: Broker, connection: psycopg.Connection) -> None:
    """Latencies of a steady load, idle and during an export of everything, in rounds of both."""
    for rate in RATES:
        rounds: dict[str, list[tuple[Measured, Measured]]] = {manner: [] for manner in MANNERS}
        load.run(_steady(running.port, rate, lambda seconds: seconds < SETTLE_SECONDS))
        for number in range(report.options.rounds):
            for manner, words in MANNERS.items():
                rounds[manner].append(_round(running, rate, words))
                both = [one.percentile_ms(99) for one in rounds[manner][-1]]
                report.progress(
                    f"{rate}/s, export {manner}, round {number + 1}, load {os.getloadavg()[0]:.1f}: {both} ms"
                )
        for manner, found in rounds.items():
            report.line(f"senders at {rate}/s, export {manner}", _of_rounds(found))


def _round(running: Broker, rate: int, words: Sequence[str]) -> tuple[Measured, Measured]:
    idle = load.run(_steady(running.port, rate, lambda seconds: seconds < IDLE_SECONDS))
    with _scratch() as folder, _in_background(running, folder / "export", words) as export:
        during = load.run(_steady(running.port, rate, lambda _: export.poll() is None))
    if export.returncode:
        raise RuntimeError(f"the export ended with {export.returncode}")
    return idle, during


def _of_rounds(rounds: list[tuple[Measured, Measured]]) -> dict[str, float]:
    idle = [one.percentile_ms(99) for one, _ in rounds]
    during = [one.percentile_ms(99) for _, one in rounds]
    ratios = [both[1] / both[0] for both in zip(idle, during, strict=True)]
    return {
        "idle_p99_ms": median(idle),
        "during_p99_ms": median(during),
        "ratio": median(ratios),
        "worst_ratio": max(ratios),
        "during_p50_ms": median(one.percentile_ms(50) for _, one in rounds),
        "export_s": median(one.seconds for _, one in rounds),
    }


async def _steady(port: int, rate: int, goes_on: Callable[[float], bool]) -> Measured:
    """Sends at a rate, each measured from the time at which it was due, however late the one before was answered."""
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
    "senders": senders,
}


def chosen(words: Sequence[str]) -> list[str]:
    """The parts that have one of these words in their names; all of them without words."""
    return [name for name in PARTS if not words or any(word in name for word in words)]


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mqbench-") as folder:
        yield Path(folder)
