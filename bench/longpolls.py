"""Long polls: the cost of a thousand waiting consumers for other requests, and the latency of their wake-up."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from datetime import datetime

import psycopg

from bench import broker, load
from bench.broker import Broker
from bench.load import Connection, Measured
from bench.report import Report

WAITING = 1000
WAIT_SECONDS = 20
SENDERS = 4
SENDS = 4000
ROUNDS = 2
WAKE_UPS = 300
PAUSE_SECONDS = 0.03
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def sessions(running: Broker) -> int:
    """The number of the broker's sessions in its database."""
    with psycopg.connect(running.database_url, autocommit=True) as connection:
        row = connection.execute(SESSIONS).fetchone()
    assert row is not None
    return int(row[0])


@contextlib.asynccontextmanager
async def waiting(port: int, groups: int) -> AsyncIterator[None]:
    """A thousand consumers of so many groups, which wait for messages that never come."""

    async def wait(number: int) -> None:
        connection = await Connection.open(port)
        asked = {"topic": "quiet", "wait_seconds": WAIT_SECONDS}
        while True:
            await connection.post(f"/v1/consumer-groups/quiet-{groups}-{number % groups}/receive", asked)

    waits = [asyncio.create_task(wait(number)) for number in range(WAITING)]
    await asyncio.sleep(8)
    try:
        yield
    finally:
        for one in waits:
            one.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def sends(port: int) -> Measured:
    """Sends to a topic without a waiting consumer."""

    async def send(connection: Connection, number: int) -> bool:
        status, _ = await connection.post("/v1/messages", {"topic": "ordinary", "body": "x" * 1000})
        return status == 201

    return await load.closed_loop(port, SENDERS, SENDS, send)


def opened(running: Broker) -> int:
    """The number of sessions once both processes have opened all that they may have for reads and writes."""
    held = 0
    while (now := sessions(running)) > held:
        held = now
        load.run(use_all(running.port))
    return held


async def use_all(port: int) -> None:
    """Reads, sends, receives and acks, many at once."""

    async def read(connection: Connection, number: int) -> bool:
        status, _ = await connection.ask("GET", "/v1/topics/quiet/queues/0/messages")
        await connection.post("/v1/messages", {"topic": "ordinary", "body": "x"})
        _, answer = await connection.post("/v1/consumer-groups/first/receive", {"topic": "ordinary"})
        messages = answer["messages"]
        assert isinstance(messages, list)
        handles = [entry["receipt_handle"] for entry in messages]
        await connection.post("/v1/consumer-groups/first/ack", {"receipt_handles": handles or ["none"]})
        return status == 200

    await load.closed_loop(port, 64, 2000, read)


async def beside(running: Broker, groups: int) -> tuple[Measured, int]:
    """The sends beside waiting consumers, and the sessions meanwhile."""
    async with waiting(running.port, groups):
        return await sends(running.port), await asyncio.to_thread(sessions, running)


async def at_each_process(port: int) -> list[Connection]:
    """A connection to each of the two web processes, distinguished by the ids of their answers."""
    found: dict[str, Connection] = {}
    while len(found) < 2:
        connection = await Connection.open(port)
        found.setdefault(await connection.process(), connection)
    return list(found.values())


async def wake_ups(port: int) -> dict[str, list[float]]:
    """Seconds from the store of a message to its arrival at consumers that wait at the same, or the other, process."""
    sender, here = (await at_each_process(port))[0], await at_each_process(port)
    found: dict[str, list[float]] = {"same": [], "other": []}
    waits = [asyncio.create_task(_consume(one, f"awake-{number}", WAKE_UPS)) for number, one in enumerate(here)]
    await asyncio.sleep(1)
    for number in range(WAKE_UPS):
        await sender.post("/v1/messages", {"topic": "loud", "body": str(number)})
        await asyncio.sleep(PAUSE_SECONDS)
    for one, latencies in zip(here, await asyncio.gather(*waits), strict=True):
        found["same" if await one.process() == await sender.process() else "other"] += latencies
    return found


async def _consume(connection: Connection, group: str, messages: int) -> list[float]:
    found: list[float] = []
    while len(found) < messages:
        asked = {"topic": "loud", "wait_seconds": WAIT_SECONDS}
        _, answer = await connection.post(f"/v1/consumer-groups/{group}/receive", asked)
        arrived = time.time()
        entries = answer["messages"]
        assert isinstance(entries, list)
        found += [arrived - datetime.fromisoformat(one["message"]["stored_at"]).timestamp() for one in entries]
        handles = [one["receipt_handle"] for one in entries]
        await connection.post(f"/v1/consumer-groups/{group}/ack", {"receipt_handles": handles})
    return found


async def make_topics(port: int) -> None:
    """Creates the topics."""
    connection = await Connection.open(port)
    for topic in ("quiet", "ordinary", "loud"):
        await connection.ask("PUT", f"/v1/topics/{topic}", b"{}")
    connection.close()


def main(report: Report) -> None:
    """Prints sends without and beside a thousand waiting consumers, the sessions, and the latencies of wake-ups."""
    with broker.running(web_processes=2, worker=False) as running:
        load.run(make_topics(running.port))
        # Waiting consumers must add no session.
        sessions_before = opened(running)
        for groups in (1, WAITING):
            # The best of two rounds of each: other processes use the machine, too.
            rounds = [(load.run(sends(running.port)), *load.run(beside(running, groups))) for _ in range(ROUNDS)]
            alone = min(one.percentile_ms(99) for one, _, _ in rounds)
            measured = min(one.percentile_ms(99) for _, one, _ in rounds)
            report.line(
                f"sends beside {WAITING} waiting consumers of {groups} groups",
                {
                    "p99_ms_alone": alone,
                    "p99_ms": measured,
                    "ratio": measured / alone,
                    "per_second_alone": max(one.per_second for one, _, _ in rounds),
                    "per_second": max(one.per_second for _, one, _ in rounds),
                    "sessions_before": sessions_before,
                    "sessions": max(held for _, _, held in rounds),
                },
            )
        for process, seconds in load.run(wake_ups(running.port)).items():
            latencies = Measured(latencies=seconds)
            report.line(
                f"woken at the {process} process",
                {"p50_ms": latencies.percentile_ms(50), "p99_ms": latencies.percentile_ms(99)},
            )
