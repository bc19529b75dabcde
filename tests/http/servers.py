"""A server of one small page on a port of its own, in the event loop of the test, and callers that see each byte."""

import asyncio
import contextlib
import math
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from ipaddress import ip_network

from mqbroker.wire.accepting import Accepting
from mqbroker.wire.arriving import Gone
from mqbroker.wire.connections import Connections
from mqbroker.wire.exchange import Exchange
from mqbroker.wire.heads import head_of
from mqbroker.wire.room import Room
from tests.broker.polling import PAUSE_SECONDS, STILL_SECONDS

MOST_CONNECTIONS = 10
# The beginning of a request.
POST = "POST /orders HTTP/1.1\nHost: broker\n"
LOOPBACK = ("127.0.0.0/8",)
TOO_MUCH = b"too much"
# Larger than what the sockets on the way hold.
LARGE_BYTES = 64 * 1024 * 1024


class Page:
    """What is served: each request is answered with its own method, path and body, and kept in `taken`.

    `/wait` is answered when the caller hangs up or the process ends, `/refused` before its body is read, `/large` with
    more than any socket holds, and `/fails` never. Paths from `/new` on are new work, for which there is room while
    fewer than `most` requests are under way; it is refused once the first of it has waited for `most_seconds`. Without
    these there is always room, and no refusal.
    """

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.most = self.most_seconds = math.inf
        self.under_way = 0
        # How many were refused by `refusal`, without an exchange.
        self.refused_at_once = 0
        # A request has been taken.
        self.begun = asyncio.Event()

    def begins(self, exchange: Exchange) -> bool:
        return exchange.path.startswith("/new")

    def has_room(self) -> bool:
        return self.under_way < self.most and not self.is_full(0.0)

    def is_full(self, waited: float) -> bool:
        return waited >= self.most_seconds

    def refusal(self, target: bytes, date: bytes) -> bytes | None:
        if not target.startswith(b"/new"):
            return None
        self.refused_at_once += 1
        length = (b"content-length", b"%d" % len(TOO_MUCH))
        return head_of(503, date, (length,), keep_alive=True) + TOO_MUCH

    def refuse(self, exchange: Exchange) -> None:
        exchange.drop()
        exchange.answer(503, (), TOO_MUCH)

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.refused_as is not None:
            exchange.answer(exchange.refused_as, (), b"no request")
            return
        self.taken.append(exchange.path)
        self.begun.set()
        if exchange.path == "/refused":
            exchange.answer(401, (), b"refused")
        elif exchange.path == "/wait":
            await exchange.gone
            exchange.answer(200, (), b"waited")
        elif exchange.path == "/large":
            exchange.start(200, ())
            await exchange.send(bytes(LARGE_BYTES))
            exchange.end()
        elif exchange.path == "/fails":
            raise RuntimeError("it fails")
        else:
            with contextlib.suppress(Gone):
                await self._echo(exchange)

    async def _echo(self, exchange: Exchange) -> None:
        whole = b""
        while chunk := await exchange.chunk():
            whole += chunk
        if exchange.is_refused:
            exchange.answer(503, (), TOO_MUCH)
            return
        exchange.answer(200, ((b"x-path", exchange.path.encode()),), exchange.method.encode() + b" " + whole)


class Served:
    """A running server: its page, its connections and its callers."""

    def __init__(self, page: Page, connections: Connections, port: int) -> None:
        self.page = page
        self.connections = connections
        self.port = port
        self._callers: list[asyncio.StreamWriter] = []

    async def caller(self, address: str = "127.0.0.1") -> "Caller":
        """A new connection to it from an address of loopback."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        self._callers.append(writer)
        return Caller(reader, writer)

    def hang_up(self) -> None:
        """Ends all callers."""
        for writer in self._callers:
            writer.transport.abort()


class Caller:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, text: str) -> None:
        """Sends it as it is, with the ends of lines that HTTP has."""
        self.writer.write(text.replace("\n", "\r\n").encode("latin-1"))

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: its status, its headers and its content."""
        async with asyncio.timeout(STILL_SECONDS):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            content = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(head[0].split(" ")[1]), headers, content

    async def ask(self, text: str) -> tuple[int, dict[str, str], bytes]:
        """The answer to what is sent."""
        self.send(text)
        return await self.answer()

    async def rest(self) -> bytes:
        """What comes until the server closes the connection."""
        async with asyncio.timeout(STILL_SECONDS):
            with contextlib.suppress(ConnectionError):
                return await self.reader.read()
        return b""


@contextlib.asynccontextmanager
async def serving(
    page: Page | None = None,
    most_connections: int = MOST_CONNECTIONS,
    most_per_address: int = MOST_CONNECTIONS,
    proxies: Sequence[str] = LOOPBACK,
) -> AsyncIterator[Served]:
    """A server of a page meanwhile, with a proxy on loopback before it."""
    page = page or Page()
    connections = Connections(page, Room(most_connections, most_per_address, [ip_network(one) for one in proxies]))
    listening = socket.create_server(("127.0.0.1", 0))
    accepting = Accepting(listening, connections)
    served = Served(page, connections, listening.getsockname()[1])
    try:
        yield served
    finally:
        await accepting.close()
        served.hang_up()
        await connections.close(0.1)


async def until(holds: Callable[[], bool]) -> None:
    """Returns when it holds."""
    async with asyncio.timeout(STILL_SECONDS):
        while not holds():  # noqa: ASYNC110  # what is waited for comes over the wire
            await asyncio.sleep(PAUSE_SECONDS)


async def until_taken(served: Served, count: int) -> None:
    """Returns when so many requests have been taken."""
    await until(lambda: len(served.page.taken) >= count)
