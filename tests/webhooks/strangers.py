"""Foreign servers: real ones, which do with each connection what a test configures."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

Behaviour = Callable[["Connection"], Awaitable[None]]


@dataclass
class Request:
    """A request as it came over the wire."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Connection:
    """One accepted connection, as the server sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    requests: list[Request]

    async def request(self) -> Request:
        """Read a whole request."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        line, *rest = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (text.split(": ", 1) for text in rest)}
        request = Request(line, headers, await self.reader.readexactly(int(headers.get("content-length", "0"))))
        self.requests.append(request)
        return request

    async def send(self, *chunks: bytes, every_seconds: float = 0.0) -> None:
        """Send bytes, one chunk at a time."""
        for chunk in chunks:
            self.writer.write(chunk)
            await self.writer.drain()
            await asyncio.sleep(every_seconds)

    async def closed_by_caller(self) -> None:
        """Wait until the caller has hung up."""
        while await self.reader.read(65_536):
            pass


def answer(status: str = "200 OK", body: bytes = b"", **headers: str) -> bytes:
    """An HTTP answer; `retry_after="3"` becomes `retry-after: 3`."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class Stranger:
    """Listens on loopback. What it saw is kept: `connections`, `requests`, and `hung_up` (callers that left first)."""

    connections: int = 0
    requests: list[Request] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    _servers: list[asyncio.Server] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def listen(self, behave: Behaviour, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> str:
        """Begin to listen and give the URL."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            self._tasks.add(task := asyncio.ensure_future(self._serve(behave, reader, writer)))
            task.add_done_callback(self._tasks.discard)

        server = await asyncio.start_server(
            serve, host, 0, backlog=512, ssl=tls, ssl_handshake_timeout=1 if tls else None
        )
        self._servers.append(server)
        port = server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if tls else 'http'}://{shown}:{port}/checks?shop=1"

    async def answers(self, *answers: bytes) -> str:
        """Listen, keep each connection, and give these answers in turn, the last one for ever."""

        async def behave(connection: Connection) -> None:
            while True:
                await connection.request()
                await connection.send(answers[min(len(self.requests), len(answers)) - 1])

        return await self.listen(behave)

    async def _serve(self, behave: Behaviour, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await behave(Connection(reader, writer, self.connections, self.requests))
        except (OSError, asyncio.IncompleteReadError):
            self.hung_up.set()
        finally:
            writer.close()

    def close(self) -> None:
        """Accept no more connections."""
        for server in self._servers:
            server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        self.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
