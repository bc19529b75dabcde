"""Lateness of delayed messages: from the due time until they are visible, at about 1,000 releases per second."""

import asyncio
import random
import time

import psycopg

from tools.bench import broker, load
from tools.bench.broker import Broker
from tools.bench.load import Connection
from tools.bench.report import Report

PER_SECOND = 1000
SECONDS = 20
PER_BULK = 20
# The database's clock sets due times and visible times, so both are read from the tables.
LATENESS = """
SELECT
    count(*),
    avg(late) * 1000,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY late) * 1000,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY late) * 1000,
    min(late) * 1000,
    max(late) * 1000
FROM (
    SELECT extract(EPOCH FROM c.entered_at - m.stored_at) - (m.keys[1])::numeric AS late
    FROM consume_queue AS c
    INNER JOIN commit_log AS m ON m.log_offset = c.log_offset AND m.segment_id = c.log_segment
    INNER JOIN topic AS t ON t.id = c.topic_id
    WHERE t.name = 'delayed'
) AS delivered
"""

CROWD = """
SELECT
    count(*),
    coalesce(extract(EPOCH FROM max(c.entered_at) - %(due_at)s::timestamptz), 0),
    coalesce(extract(EPOCH FROM min(c.entered_at) - %(due_at)s::timestamptz), 0)
FROM consume_queue AS c
INNER JOIN topic AS t ON t.id = c.topic_id
WHERE t.name = 'crowd'
"""


def delayed(generator: random.Random) -> dict[str, object]:
    """A message for a level or a timer. Its key is its delay in seconds."""
    if generator.random() < 0.5:
        level, seconds = generator.choice(((1, 1.0), (2, 5.0)))
        return {"op": "send", "topic": "delayed", "body": "x" * 200, "delay_level": level, "keys": [str(seconds)]}
    seconds = round(generator.uniform(0.2, 6.0), 3)
    return {"op": "send", "topic": "delayed", "body": "x" * 200, "delay_seconds": seconds, "keys": [str(seconds)]}


async def steady(port: int) -> int:
    """Sends delayed messages at a fixed rate, even if answers are slow. Returns how many were stored."""
    generator = random.Random(7)
    connections = [await Connection.open(port) for _ in range(8)]
    stored = 0

    async def client(number: int, connection: Connection) -> None:
        nonlocal stored
        began = time.monotonic() + number * PER_BULK / PER_SECOND
        for round_ in range(PER_SECOND * SECONDS // PER_BULK // len(connections)):
            due = began + round_ * PER_BULK * len(connections) / PER_SECOND
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            operations = [delayed(generator) for _ in range(PER_BULK)]
            status, _ = await connection.post("/v1/bulk", {"operations": operations})
            stored += PER_BULK * (status == 200)

    await asyncio.gather(*(client(number, connection) for number, connection in enumerate(connections)))
    return stored


def main(report: Report) -> None:
    """Prints the lateness of a steady stream, and how long 100,000 messages with the same due time take."""
    with broker.running() as running:
        stored = load.run(steady(running.port))
        time.sleep(8)
        with psycopg.connect(running.database_url) as connection:
            row = connection.execute(LATENESS).fetchone()
        assert row is not None
        names = ("delivered", "mean_ms", "p50_ms", "p99_ms", "earliest_ms", "latest_ms")
        figures = {name: float(figure) for name, figure in zip(names, row, strict=True)}
        report.line("steady", {"stored": stored, "per_second": stored / SECONDS, **figures})
        all_at_once(running, report)


def all_at_once(running: Broker, report: Report) -> None:
    """Measures 100,000 messages that are due in the same second, with ordinary sends at the same time."""
    due = time.time() + 45
    deliver_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(due))

    async def fill(connection: Connection, number: int) -> bool:
        message = {"op": "send", "topic": "crowd", "body": "x" * 200, "deliver_at": deliver_at}
        status, _ = await connection.post("/v1/bulk", {"operations": [message] * 500})
        return status == 200

    async def send(connection: Connection, number: int) -> bool:
        await asyncio.sleep(0.01)
        status, _ = await connection.post("/v1/messages", {"topic": "ordinary", "body": "x" * 200})
        return status == 201

    load.run(load.closed_loop(running.port, 4, 200, fill))
    baseline = load.run(load.closed_loop(running.port, 4, 1000, send))
    time.sleep(max(0.0, due - 0.5 - time.time()))
    beside = load.run(load.closed_loop(running.port, 4, 2000, send))
    visible = _crowd(running, deliver_at)
    while visible[0] < 100_000 and time.time() < due + 120:
        time.sleep(0.5)
        visible = _crowd(running, deliver_at)
    report.line(
        "100,000 due in one second",
        {
            "delivered": visible[0],
            "seconds_to_last": visible[1],
            "earliest_seconds": visible[2],
            "send_p99_ms_before": baseline.percentile_ms(99),
            "send_p99_ms_meanwhile": beside.percentile_ms(99),
            "ratio": beside.percentile_ms(99) / baseline.percentile_ms(99),
        },
    )


def _crowd(running: Broker, due_at: str) -> tuple[float, float, float]:
    """The number of visible messages, and the seconds from their due time until the last and the first were visible."""
    with psycopg.connect(running.database_url) as connection:
        row = connection.execute(CROWD, {"due_at": due_at}).fetchone()
    assert row is not None
    return float(row[0]), float(row[1]), float(row[2])
