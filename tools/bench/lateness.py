"""Lateness: of delayed messages, from their due time until they are visible, and of checks that are due at once."""

import asyncio
import random
import time
from functools import partial

import psycopg

from tools.bench import broker, checks, load
from tools.bench.broker import Broker
from tools.bench.load import Connection
from tools.bench.report import Cases, Report

PER_SECOND = 1000
PER_BULK = 20
CROWD = 100_000
NAMES = ("delivered", "mean_ms", "p50_ms", "p99_ms", "earliest_ms", "latest_ms")
# The database's clock sets due times and visible times, so both are read from the tables.
LATENESS = """
SELECT
    count(*),
    coalesce(avg(late) * 1000, 0),
    coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY late) * 1000, 0),
    coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY late) * 1000, 0),
    coalesce(min(late) * 1000, 0),
    coalesce(max(late) * 1000, 0)
FROM (
    SELECT extract(EPOCH FROM c.entered_at - {since}) - (m.keys[1])::numeric AS late
    FROM consume_queue AS c
    INNER JOIN commit_log AS m ON m.log_offset = c.log_offset AND m.segment_id = c.log_segment
    INNER JOIN topic AS t ON t.id = c.topic_id
    WHERE t.name = 'delayed'
) AS delivered
"""
# The key of a message is its delay, or the Unix time at which it is due.
DELAYED, DUE = LATENESS.format(since="m.stored_at"), LATENESS.format(since="to_timestamp(0)")


def delayed(generator: random.Random) -> dict[str, object]:
    """A message for a level or a timer."""
    if generator.random() < 0.5:
        level, seconds = generator.choice(((1, 1.0), (2, 5.0)))
        return {"op": "send", "topic": "delayed", "body": "x" * 200, "delay_level": level, "keys": [str(seconds)]}
    seconds = round(generator.uniform(0.2, 6.0), 3)
    return {"op": "send", "topic": "delayed", "body": "x" * 200, "delay_seconds": seconds, "keys": [str(seconds)]}


async def sent(port: int, seconds: float) -> int:
    """Sends delayed messages at a fixed rate, even if answers are slow. Returns how many were stored."""
    generator = random.Random(7)
    connections = [await Connection.open(port) for _ in range(8)]
    stored = 0

    async def client(number: int, connection: Connection) -> None:
        nonlocal stored
        began = time.monotonic() + number * PER_BULK / PER_SECOND
        for round_ in range(int(PER_SECOND * seconds) // PER_BULK // len(connections)):
            due = began + round_ * PER_BULK * len(connections) / PER_SECOND
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            operations = [delayed(generator) for _ in range(PER_BULK)]
            status, _ = await connection.post("/v1/bulk", {"operations": operations})
            stored += PER_BULK * (status == 200)

    await asyncio.gather(*(client(number, connection) for number, connection in enumerate(connections)))
    return stored


def steady(report: Report) -> None:
    """Prints the lateness of a steady stream, over four times `--seconds`."""
    with broker.running() as running:
        stored = load.run(sent(running.port, 4 * report.options.seconds))
        report.line(f"due at {PER_SECOND}/s", {"stored": stored, **_lateness(running, DELAYED, stored, 30)})


def at_once(report: Report) -> None:
    """Prints the lateness of 100,000 messages that are due in the same second, with ordinary sends meanwhile."""
    messages = report.options.messages or CROWD
    with broker.running() as running:
        # Enough time to store the messages before they are due.
        due = int(time.time() + 20 + messages / 4000)
        deliver_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(due))
        message = {"op": "send", "topic": "delayed", "body": "x" * 200, "deliver_at": deliver_at, "keys": [str(due)]}

        async def send(connection: Connection, number: int) -> bool:
            await asyncio.sleep(0.01)
            status, _ = await connection.post("/v1/messages", {"topic": "ordinary", "body": "x" * 200})
            return status == 201

        load.fill(running.port, messages, lambda number: message)
        before = load.run(load.closed_loop(running.port, 4, 1000, send)).percentile_ms(99)
        time.sleep(max(0.0, due - 0.5 - time.time()))
        meanwhile = load.run(load.closed_loop(running.port, 4, 2000, send)).percentile_ms(99)
        figures = _lateness(running, DUE, messages, 120)
        sends = {"send_p99_ms_before": before, "send_p99_ms_meanwhile": meanwhile, "ratio": meanwhile / before}
        report.line(f"{messages:,} due in one second", {**figures, **sends})


def _lateness(running: Broker, statement: str, messages: int, seconds: float) -> dict[str, float]:
    """The lateness of this number of messages, once all are visible, or of those that are visible in time."""
    deadline = time.monotonic() + seconds
    with psycopg.connect(running.database_url, autocommit=True) as connection:
        while True:
            [row] = connection.execute(statement.encode()).fetchall()
            if row[0] >= messages or time.monotonic() > deadline:
                return {name: float(figure) for name, figure in zip(NAMES, row, strict=True)}
            time.sleep(0.5)


CASES: Cases = {
    "steady": steady,
    "due in one second": at_once,
    "checks, 100 to a call": partial(checks.main, 100, 100_000),
    "checks, one to a call": partial(checks.main, 1, 20_000),
}
