"""Memory: what a web process keeps after 300,000 requests and 200,000 deliveries, beside what it has after 10,000."""

import asyncio
import time

from bench import broker, load
from bench.broker import Broker
from bench.load import Connection
from bench.machine import rss_bytes_of_group
from bench.report import Report

WARM = 10_000
REQUESTS = 300_000
CONSUMED = 200_000
CONNECTIONS = 16
BODY = "x" * 1000
# Caches of configuration live for seconds, and so do the last answers.
SETTLED_SECONDS = 10.0
TOPIC = "remembered"
MEGABYTE = 1024 * 1024


def send(running: Broker, count: int) -> None:
    """Sends so many messages of 1 kB, a request each."""

    async def one(connection: Connection, number: int) -> bool:
        status, _ = await connection.post("/v1/messages", {"topic": TOPIC, "body": BODY})
        return status == 201

    measured = load.run(load.closed_loop(running.port, CONNECTIONS, count, one))
    if measured.refused:
        raise RuntimeError(f"{measured.refused} of {count} sends were refused: the figures mean nothing")


async def consume(port: int, count: int) -> None:
    """Receives and acks so many messages."""
    acked = 0

    async def consumer() -> None:
        nonlocal acked
        connection = await Connection.open(port)
        while acked < count:
            _, answer = await connection.post("/v1/consumer-groups/readers/receive", {"topic": TOPIC})
            messages = answer["messages"]
            assert isinstance(messages, list)
            if messages:
                handles = [entry["receipt_handle"] for entry in messages]
                await connection.post("/v1/consumer-groups/readers/ack", {"receipt_handles": handles})
                acked += len(handles)
        connection.close()

    await asyncio.gather(*(consumer() for _ in range(CONNECTIONS)))


def main(report: Report) -> None:
    """Prints the resident memory after each phase, and the last one as a part of the first."""
    with broker.running(worker=False) as running:

        def settled_mb() -> float:
            time.sleep(SETTLED_SECONDS)
            return rss_bytes_of_group(running.processes["web"].pid) / MEGABYTE

        send(running, WARM)
        first = settled_mb()
        send(running, REQUESTS - WARM)
        sent = settled_mb()
        load.run(consume(running.port, CONSUMED))
        last = settled_mb()
        report.line(
            f"web after {WARM}, {REQUESTS} requests, and {CONSUMED} consumed",
            {"first_mb": first, "sent_mb": sent, "consumed_mb": last, "growth": last / first - 1},
        )
