"""Messages from the beginning of each send to its arrival at a waiting consumer."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator

from tools.bench.load import Connection

PER_SECOND = 500
CONNECTIONS, CONSUMERS = 8, 4


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
