"""Disturbances: how check pollers, a locked half message and a stopped process slow down senders.

Rounds with a disturbance alternate with rounds without it. Printed are the medians of the ratios within a round: of the
rate, and of the CPU of web and PostgreSQL per operation, which other work on the machine hardly changes.
"""

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import psycopg

from mqbroker.embedded.folder import free_port
from tools.bench import broker, load, throughput
from tools.bench.broker import KEY, Broker
from tools.bench.load import Connection, Measured
from tools.bench.machine import Database
from tools.bench.report import Report

POLLERS = 300
POLL_SECONDS = 30
CONNECTIONS = 64
# After this time each poller has polled, and an end has met the lock.
SETTLE_SECONDS = 2.0
LOCK = "SELECT 1 FROM half_message WHERE transaction_id = %s FOR UPDATE"
# How often the process is stopped, each time at another moment of its work.
STOPS = 5

Disturbance = Callable[[Broker], contextlib.AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class Case:
    """A disturbance, and the load that it may slow down."""

    name: str
    disturbance: Disturbance
    round: load.Round


@contextlib.asynccontextmanager
async def pollers(running: Broker) -> AsyncIterator[None]:
    """Runs many check pollers of a group that has nothing due."""
    path = f"/v1/producer-groups/{throughput.GROUP}/checks/receive"

    async def poll() -> None:
        connection = await Connection.open(running.port)
        try:
            while True:
                status, _ = await connection.post(path, {"wait_seconds": POLL_SECONDS})
                assert status == 200
        finally:
            # The next round begins after the broker has noticed that the connection is closed.
            connection.close()

    async with ended(poll for _ in range(POLLERS)):
        yield


@contextlib.asynccontextmanager
async def locked_half(running: Broker) -> AsyncIterator[None]:
    """Locks the row of a half message in another session, while its producer repeats the commit."""
    transaction_id = str(uuid.uuid4())
    connection = await Connection.open(running.port)
    await connection.post("/v1/transactions", throughput.half(transaction_id))

    async def end() -> None:
        while True:
            await connection.ask("POST", f"/v1/transactions/{transaction_id}/end", throughput.END)

    with psycopg.connect(running.database_url) as session:
        assert session.execute(LOCK.encode(), (transaction_id,)).rowcount == 1
        async with ended([end]):
            yield


@contextlib.asynccontextmanager
async def ended(works: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> AsyncIterator[None]:
    """Runs works in the background; cancels them at the end of the block."""
    tasks = [asyncio.create_task(work()) for work in works]
    await asyncio.sleep(SETTLE_SECONDS)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


CASES = (
    Case(f"{POLLERS} check pollers beside sends", pollers, throughput.send),
    Case("a locked half message beside transactions", locked_half, throughput.transact),
)


def main(report: Report) -> None:
    """Prints the medians for each disturbance, and the longest delay beside a stopped process."""
    with (
        psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection,
        broker.running(worker=False) as running,
    ):
        report.fact("machine", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        load.run(load.closed_loop(running.port, CONNECTIONS, None, throughput.transact, throughput.WARM_UP_SECONDS))
        for case in CASES:
            _rounds(report, case, running, Database(connection))
        _stopped(report, running)


def _rounds(report: Report, case: Case, running: Broker, database: Database) -> None:
    without: list[float] = []
    beside: list[float] = []
    costs: list[float] = []
    for number in range(report.options.rounds):
        report.progress(f"{case.name}, round {number + 1} of {report.options.rounds}")
        found = {}
        for disturbed in (False, True) if number % 2 else (True, False):
            measured, cpu = load.run(_measured(running, case, database, report.options.seconds, disturbed=disturbed))
            found[disturbed] = (measured.per_second, cpu / max(1, len(measured.latencies)))
        without.append(found[False][0])
        beside.append(found[True][0])
        costs.append(found[True][1] / found[False][1])
    report.line(
        case.name,
        {
            "without_per_second": median(without),
            "beside_per_second": median(beside),
            "ratio": median(with_it / alone for with_it, alone in zip(beside, without, strict=True)),
            "cpu_ratio": median(costs),
            "rounds_in_favour": sum(with_it >= alone for with_it, alone in zip(beside, without, strict=True)),
        },
    )


async def _measured(
    running: Broker, case: Case, database: Database, seconds: float, *, disturbed: bool
) -> tuple[Measured, float]:
    """Measures a load. Returns its measurements, and the CPU seconds of web and PostgreSQL in the same time."""
    async with case.disturbance(running) if disturbed else contextlib.nullcontext():
        with database.used() as used:
            web = running.cpu_seconds()["web"]
            measured = await load.closed_loop(running.port, CONNECTIONS, None, case.round, seconds)
            web = running.cpu_seconds()["web"] - web
    return measured, web + used.cpu_seconds


def _stopped(report: Report, running: Broker) -> None:
    """Stops one web process under load several times, each for a part of `--seconds`, and measures the sends of the
    other.
    """
    port = free_port()
    commands = running.checkout.commands(KEY, port, "1", Path(running.folder) / "other-schedule")
    running.start("other", commands["web"])
    running.wait_until_ready("other", port)
    group = running.processes["other"].pid
    try:
        longest = load.run(_stalls(running.port, port, group, report.options.seconds))
    finally:
        os.killpg(group, signal.SIGCONT)
    report.line(f"sends beside a process that is stopped {STOPS} times", {"longest_ms": 1000 * longest})


async def _stalls(port: int, other: int, group: int, seconds: float) -> float:
    """The longest send of one process in seconds, while the other one is stopped under load."""

    async def one_of_all(connection: Connection, number: int) -> bool:
        if number % 3 == 0:
            return await throughput.send(connection, number)
        if number % 3 == 1:
            return await throughput.transact(connection, number)
        path = "/v1/consumer-groups/stopped/receive"
        status, _ = await connection.ask("POST", path, msgspec.json.encode({"topic": "sends"}))
        return status == 200

    async def loaded() -> None:
        with contextlib.suppress(ConnectionError):
            await load.closed_loop(other, CONNECTIONS, None, one_of_all)

    longest = 0.0
    async with ended([loaded]):
        for number in range(STOPS):
            os.killpg(group, signal.SIGSTOP)
            measured = await load.closed_loop(port, CONNECTIONS, None, throughput.send, seconds)
            os.killpg(group, signal.SIGCONT)
            longest = max(longest, *measured.latencies)
            await asyncio.sleep(0.5 + number / 97)
    return longest
