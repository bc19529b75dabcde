"""The load: closed-loop clients over kept connections, cheap enough that the broker, not they, is measured."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from bench.broker import KEY

HEAD = (
    "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + KEY + "\r\nContent-Length: {length}\r\n\r\n"
)


@dataclass
class Measured:
    """What a load saw: finished rounds, their latencies in seconds, and how long it took."""

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


class Connection:
    """One kept HTTP/1.1 connection that asks and waits."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """The status and body of one request."""
        head = HEAD.format(method=method, path=path, length=len(body))
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in answer.split(b"\r\n"):
            if line[:15].lower() == b"content-length:":
                length = int(line[15:])
        return int(answer[9:12]), await self._reader.readexactly(length) if length else b""

    async def process(self) -> str:
        """Which web process is at the other end: ids of requests begin with its own."""
        self._writer.write(HEAD.format(method="GET", path="/v1/transactions/none", length=0).encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n") if b": " in line)
        await self._reader.readexactly(int(fields[b"content-length"]))
        return fields[b"x-request-id"].split(b"-")[0].decode()

    async def post(self, path: str, content: object) -> tuple[int, dict[str, object]]:
        """The status and decoded answer of one POST."""
        status, answer = await self.ask("POST", path, msgspec.json.encode(content))
        return status, msgspec.json.decode(answer)

    def close(self) -> None:
        self._writer.close()


# One round of a client: its connection and the round's number; whether the broker did what it was asked.
Round = Callable[[Connection, int], Awaitable[bool]]


async def closed_loop(port: int, connections: int, rounds: int, one_round: Round) -> Measured:
    """`rounds` rounds over so many connections, each beginning its next round when one is done."""
    measured = Measured()
    numbers = iter(range(rounds))

    async def client() -> None:
        connection = await Connection.open(port)
        for number in numbers:
            began = time.perf_counter()
            if await one_round(connection, number):
                measured.latencies.append(time.perf_counter() - began)
            else:
                measured.refused += 1
        connection.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(connections)))
    measured.seconds = time.perf_counter() - began
    return measured
