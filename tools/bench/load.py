"""The load generator: clients that send the next request after each answer, over kept connections, with little CPU."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

import msgspec
import uvloop

from tools.bench.broker import KEY

HEAD = f"Host: bench\r\nAuthorization: Bearer {KEY}\r\nContent-Length: "
END = b"\r\n\r\n"
LENGTH = b"content-length:"
# The number of operations in a bulk request that stores a backlog.
PER_BULK = 500

Result = TypeVar("Result")


def run(load: Coroutine[Any, Any, Result]) -> Result:
    """Runs a load on uvloop, the event loop that uses the least CPU. Returns its result."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(load)


@dataclass
class Measured:
    """The measurements of a load, in seconds: the latency of each finished round, and the total time."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    refused: int = 0

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile_ms(self, percent: float) -> float:
        """A percentile of the latencies, in milliseconds."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


class Connection(asyncio.Protocol):
    """A kept HTTP/1.1 connection that sends a request and waits for the answer: about 15 µs of CPU per request."""

    def __init__(self) -> None:
        self._received = b""
        # Where the answer's body begins and ends; -1 while the head is incomplete.
        self._head = self._end = -1
        self._answered: asyncio.Future[tuple[bytes, bytes]] | None = None

    @classmethod
    async def open(cls, port: int) -> "Connection":
        _, connection = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has another type than asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(ConnectionResetError("the broker closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        if self._end < 0:
            self._measure()
        if 0 <= self._end <= len(self._received) and self._answered is not None:
            head, body = self._received[: self._head], self._received[self._head : self._end]
            self._received, self._end = self._received[self._end :], -1
            # If the caller was cancelled, it no longer waits for its answer.
            if not self._answered.done():
                self._answered.set_result((head, body))

    def _measure(self) -> None:
        head = self._received.find(END)
        if head < 0:
            return
        self._head = self._end = head + len(END)
        fields = self._received[:head].lower()
        length = fields.find(LENGTH)
        if length >= 0:
            self._end += int(fields[length + len(LENGTH) :].split(b"\r\n", 1)[0])

    async def _exchange(self, method: str, path: str, body: bytes) -> tuple[bytes, bytes]:
        """The head and the body of the answer to one request."""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(f"{method} {path} HTTP/1.1\r\n{HEAD}{len(body)}\r\n\r\n".encode() + body)
        return await self._answered

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """The status and body of one request."""
        head, answer = await self._exchange(method, path, body)
        return int(head[9:12]), answer

    async def process(self) -> str:
        """The id of the web process at the other end, with which the ids in its answers begin."""
        head, _ = await self._exchange("GET", "/v1/transactions/none", b"")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n") if b": " in line)
        return fields[b"x-request-id"].split(b"-")[0].decode()

    async def post(self, path: str, content: object) -> tuple[int, dict[str, object]]:
        """The status and decoded answer of one POST."""
        status, answer = await self.ask("POST", path, msgspec.json.encode(content))
        return status, msgspec.json.decode(answer)

    def close(self) -> None:
        self._transport.close()


class Closing(Protocol):
    """A connection that can be closed."""

    def close(self) -> None: ...


Kept = TypeVar("Kept", bound=Closing)
# One round of a client, called with its connection and the round's number; returns whether the broker answered as
# expected.
Round = Callable[[Connection, int], Awaitable[bool]]


async def closed_loop(
    port: int, connections: int, rounds: int | None, one_round: Round, seconds: float = math.inf
) -> Measured:
    """Runs rounds over several connections; each connection begins its next round when one is done.

    Ends after `rounds` rounds, or after `seconds` when the running rounds are done.
    """
    opened = [await Connection.open(port) for _ in range(connections)]
    return await rounds_over(opened, rounds, one_round, seconds)


async def rounds_over(
    opened: Sequence[Kept], rounds: int | None, one_round: Callable[[Kept, int], Awaitable[bool]], seconds: float
) -> Measured:
    """Runs rounds over open connections, as `closed_loop` does, and closes them."""
    measured = Measured()
    numbers = iter(range(rounds if rounds is not None else 2**31))
    start = time.perf_counter()

    async def client(connection: Kept) -> None:
        for number in numbers:
            began = time.perf_counter()
            if began - start > seconds:
                return
            if await one_round(connection, number):
                measured.latencies.append(time.perf_counter() - began)
            else:
                measured.refused += 1

    await asyncio.gather(*map(client, opened))
    measured.seconds = time.perf_counter() - start
    for connection in opened:
        connection.close()
    return measured


def fill(port: int, count: int, operation: Callable[[int], object]) -> None:
    """Stores `count` operations by bulks, each made from the number of its bulk. Raises RuntimeError if some were
    refused.
    """

    async def one_bulk(connection: Connection, number: int) -> bool:
        content = {"operations": [operation(number) for _ in range(PER_BULK)]}
        _, answer = await connection.ask("POST", "/v1/bulk", msgspec.json.encode(content))
        return answer.count(b'"status":201') == PER_BULK

    if refused := run(closed_loop(port, 4, count // PER_BULK, one_bulk)).refused:
        raise RuntimeError(f"{refused} bulk requests were refused, in whole or in part: the figures would mean nothing")
