"""A number of messages sent and received as fast as possible, while retention drops messages older than a minute."""

import asyncio
import time

import psycopg

from mqbroker.embedded import commands
from tools.bench import broker, load
from tools.bench.arrivals import Arrivals
from tools.bench.broker import Broker
from tools.bench.load import Connection
from tools.bench.machine import tables
from tools.bench.report import Report

MESSAGES = 20_000_000
PER_BATCH, CONNECTIONS = 100, 8
BATCH = {"topic": "filling", "messages": [{"body": "x" * 200}] * PER_BATCH}
SEGMENTS, RETENTION_SECONDS = 20, 60


def main(report: Report) -> None:
    """Prints rate and table bytes of each minute, and the rate of the last whole minute beside the first. Ends after
    `--messages` messages or `--minutes` minutes.
    """
    messages = report.options.messages or MESSAGES
    with (
        broker.running(SEGMENT_MAX_MESSAGES=max(1000, messages // SEGMENTS)) as running,
        psycopg.connect(running.database_url, autocommit=True) as connection,
    ):
        running.start("retention", commands.python("-m", "tools.bench.programs.retention", str(RETENTION_SECONDS)))
        rates = load.run(_fill(report, running, connection, messages))
    report.line("filling, last minute beside the first", {"ratio": rates[-1] / rates[0], "minutes": len(rates)})


async def _fill(report: Report, running: Broker, connection: psycopg.Connection, messages: int) -> list[float]:
    """The rates of all minutes; the last one, if it is not the only one, is whole."""
    sent, rates, began = 0, list[float](), time.monotonic()
    deadline = began + 60 * report.options.minutes

    async def producer(connection: Connection) -> None:
        nonlocal sent
        while sent < messages and time.monotonic() < deadline:
            status, _ = await connection.post("/v1/messages/batch", BATCH)
            sent += PER_BATCH * (status == 201)

    async with Arrivals().consumed(running.port, "readers", "filling"):
        producing = asyncio.gather(*[producer(await Connection.open(running.port)) for _ in range(CONNECTIONS)])
        while not producing.done():
            before, minute = sent, time.monotonic()
            await asyncio.wait([producing], timeout=60)
            seconds = time.monotonic() - minute
            if seconds >= 59 or not rates:
                rates.append((sent - before) / seconds)
                figures = {"messages": sent, "per_second": rates[-1], **await asyncio.to_thread(tables, connection)}
                report.line(f"filling, minute {len(rates)}", figures)
        await producing
    return rates
