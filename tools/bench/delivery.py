"""Consumers: the latency to a waiting consumer, the cost of acks with messages, the rate of consuming a backlog."""

import asyncio
import contextlib
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator

import psycopg
from mqbroker_client.core.ids import uuid7

from tools.bench import broker, load
from tools.bench.broker import Broker
from tools.bench.load import Connection
from tools.bench.machine import Database
from tools.bench.report import Report

PER_SECOND = 500
SECONDS = 15
BACKLOG = 200_000
PER_BULK = 500
CONNECTIONS, CONSUMERS = 8, 4
PIPE_SECONDS, PIPE_ROUNDS = 2.0, 5


class Arrivals:
    """The messages of one run by their bodies, and the seconds from the beginning of each to its arrival."""

    def __init__(self) -> None:
        self._run, self._began = uuid.uuid4().hex, dict[str, float]()
        self.latencies: list[float] = []
        self.come = asyncio.Event()

    def begin(self, name: str) -> str:
        """The body of a message that begins now. A second call restarts its time."""
        body = f"{self._run}:{name}"
        self._began[body] = time.perf_counter()
        return body

    async def consume(self, port: int, group: str, topic: str) -> None:
        """Receives and acks until it is cancelled."""
        connection, path = await Connection.open(port), f"/v1/consumer-groups/{group}"
        while True:
            _, answer = await connection.post(
                f"{path}/receive", {"topic": topic, "wait_seconds": 1, "max_messages": 32}
            )
            arrived = time.perf_counter()
            messages = answer["messages"]
            assert isinstance(messages, list)
            bodies = [entry["message"]["body"] for entry in messages]
            # Messages of an earlier run that were not acked are delivered again, and do not count.
            self.latencies.extend(max(0.0, arrived - self._began[body]) for body in bodies if body in self._began)
            self.come.set()
            if messages:
                handles = [entry["receipt_handle"] for entry in messages]
                await connection.post(f"{path}/ack", {"receipt_handles": handles})

    @contextlib.asynccontextmanager
    async def consumed(self, port: int, group: str, topic: str) -> AsyncIterator[None]:
        """Consumers receive messages from 1 s before the `async with` block until 1 s after the block."""
        consumers = [asyncio.ensure_future(self.consume(port, group, topic)) for _ in range(CONSUMERS)]
        await asyncio.sleep(1)
        yield
        await asyncio.sleep(1)
        for consumer in consumers:
            consumer.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)


async def end_to_end(port: int, seconds: float) -> list[float]:
    """Seconds from the beginning of each send to its arrival at one of the waiting consumers."""
    arrivals = Arrivals()

    async def producer(number: int, connection: Connection) -> None:
        began = time.monotonic() + number / PER_SECOND
        for round_ in range(int(PER_SECOND * seconds) // CONNECTIONS):
            await asyncio.sleep(max(0.0, began + round_ * CONNECTIONS / PER_SECOND - time.monotonic()))
            await connection.post("/v1/messages", {"topic": "soon", "body": arrivals.begin(f"{number}:{round_}")})

    setup = await Connection.open(port)
    await setup.ask("PUT", "/v1/topics/soon", b"{}")
    connections = [await Connection.open(port) for _ in range(CONNECTIONS)]
    async with arrivals.consumed(port, "readers", "soon"):
        await asyncio.gather(*(producer(number, connection) for number, connection in enumerate(connections)))
    return arrivals.latencies


async def drain(port: int) -> float:
    """Seconds until one process has received and acked the whole backlog, 32 messages at a time over several
    connections.
    """
    acked = 0

    async def client() -> None:
        nonlocal acked
        connection = await Connection.open(port)
        while acked < BACKLOG:
            _, answer = await connection.post("/v1/consumer-groups/drain/receive", {"topic": "backlog"})
            messages = answer["messages"]
            assert isinstance(messages, list)
            if messages:
                handles = [entry["receipt_handle"] for entry in messages]
                await connection.post("/v1/consumer-groups/drain/ack", {"receipt_handles": handles})
                acked += len(handles)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return time.perf_counter() - began


def fill(running: Broker) -> None:
    """Sends the backlog."""

    async def one_bulk(connection: Connection, number: int) -> bool:
        message = {"op": "send", "topic": "backlog", "body": "x" * 200}
        status, _ = await connection.post("/v1/bulk", {"operations": [message] * PER_BULK})
        return status == 200

    load.run(load.closed_loop(running.port, 4, BACKLOG // PER_BULK, one_bulk))


class Pipe:
    """Consumers that send a message for each delivery: by one call with the ack, or by a call after the ack."""

    def __init__(self, name: str) -> None:
        self._is_one = name == "as one"
        self._taken = defaultdict[Connection, list[str]](list)

    async def one(self, connection: Connection, number: int) -> bool:
        """Acks the next delivery of a caller and sends its message; a receive takes 32 deliveries."""
        path, taken = "/v1/consumer-groups/pipe", self._taken[connection]
        if not taken:
            _, answer = await connection.post(f"{path}/receive", {"topic": "backlog", "max_messages": 32})
            messages = answer["messages"]
            assert isinstance(messages, list)
            taken.extend(entry["receipt_handle"] for entry in messages)
        ack: dict[str, object] = {"receipt_handles": [taken.pop()]}
        message = {"topic": "made", "body": "x" * 200, "message_id": str(uuid7())}
        if self._is_one:
            status, _ = await connection.post(f"{path}/ack", ack | {"messages": [message]})
            return status == 200
        await connection.post(f"{path}/ack", ack)
        status, _ = await connection.post("/v1/messages", message)
        return status == 201


def pipes(report: Report, running: Broker, watch: psycopg.Connection) -> None:
    """Prints, in turns within each round, what an ack with a message costs beside an ack and a send."""
    for callers in (1, CONNECTIONS) * PIPE_ROUNDS:
        for name in ("one after the other", "as one"):
            with Database(watch).used() as used:
                web, pipe = running.cpu_seconds()["web"], Pipe(name)
                measured = load.run(load.closed_loop(running.port, callers, None, pipe.one, PIPE_SECONDS))
                web = running.cpu_seconds()["web"] - web
            done = len(measured.latencies)
            report.line(
                f"ack and send {name}, {callers} callers",
                {
                    "per_second": measured.per_second,
                    "p50_ms": measured.percentile_ms(50),
                    "refused": measured.refused,
                    "web_cpu_us": web * 1e6 / done,
                    "postgres_cpu_us": used.cpu_seconds * 1e6 / done,
                },
            )


def main(report: Report) -> None:
    """Prints end-to-end latencies, costs of acks with messages, and the rate of consuming a backlog."""
    with broker.running() as running, psycopg.connect(running.database_url, autocommit=True) as connection:
        measured = load.Measured(SECONDS, load.run(end_to_end(running.port, SECONDS)))
        report.line(
            f"end to end at {PER_SECOND}/s",
            {
                "received": len(measured.latencies),
                "p50_ms": measured.percentile_ms(50),
                "p99_ms": measured.percentile_ms(99),
            },
        )
        fill(running)
        pipes(report, running, connection)
        with Database(connection).used() as used:
            before = running.cpu_seconds()["web"]
            seconds = load.run(drain(running.port))
            web = running.cpu_seconds()["web"] - before
        report.line(
            f"drain of {BACKLOG}",
            {
                "seconds": seconds,
                "per_second": BACKLOG / seconds,
                "web_cpu_us": web * 1e6 / BACKLOG,
                "postgres_cpu_us": used.cpu_seconds * 1e6 / BACKLOG,
                "wal_bytes": used.wal_bytes / BACKLOG,
            },
        )
