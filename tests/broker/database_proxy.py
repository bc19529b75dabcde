"""A TCP proxy in front of PostgreSQL: swallows, slows, cuts or resets on demand, and drops the reply of a COMMIT.

A connection may also fall silent at its next COMMIT, by itself: the server that it shows has stopped just there.
"""

import asyncio
import contextlib
import socket
import struct
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit

from tests.broker.background import BackgroundLoop
from tests.broker.ports import free_port

CHUNK_BYTES = 65_536
# PostgreSQL's CommandComplete of a commit.
COMMITTED = b"COMMIT\x00"
# Where a connection falls silent: before the server has the COMMIT; when it has done it; when its client knows that.
Silence = Literal["before the commit", "during the commit", "after the commit"]


class Link:
    """A client's connection by way of the proxy."""

    def __init__(self) -> None:
        self.is_silent = False

    def passes(self, data: bytes, silence: Silence | None, *, of_server: bool) -> bool:
        """Whether these bytes are passed on: nothing is any more from where the connection falls silent."""
        if self.is_silent:
            return False
        if not of_server:
            self.is_silent = silence == "before the commit" and b"COMMIT" in data
            return not self.is_silent
        self.is_silent = silence in ("during the commit", "after the commit") and COMMITTED in data
        return not self.is_silent or silence == "after the commit"


class DatabaseProxy:
    """Passes everything on. What a fault does holds for the connections that are open and for those that come."""

    def __init__(self, database_url: str) -> None:
        self._target = urlsplit(database_url)
        self._port = free_port()
        self._loop = BackgroundLoop("database proxy")
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._passes = asyncio.Event()
        self._passes.set()
        self.delay_seconds = 0.0
        # The next replies to a COMMIT that are dropped, their connections with them.
        self.drops_commits = 0
        # The first packet of a client that has these bytes is swallowed, with all that comes after it.
        self.swallows_from: bytes | None = None
        # Where each connection falls silent that commits from now on.
        self.silence: Silence | None = None

    @property
    def url(self) -> str:
        """The database's URL by way of this proxy."""
        user, at, _ = self._target.netloc.rpartition("@")
        return self._target._replace(netloc=f"{user}{at}127.0.0.1:{self._port}").geturl()

    def swallow(self, *, packets: bool) -> None:
        """Takes what comes and passes nothing on, as a network does that swallows packets; or passes on again."""
        self._loop.call(self._passes.clear if packets else self._passes.set)

    def cut(self, *, reset: bool = False) -> None:
        """Ends every connection, by FIN or by RST."""
        self._loop.run(self._cut(reset=reset))

    async def _cut(self, *, reset: bool) -> None:
        for writer in list(self._writers):
            if reset:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.close()

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        self._writers.add(writer)
        try:
            there = await asyncio.open_connection(self._target.hostname, self._target.port or 5432)
            ends.append(there[1])
            self._writers.add(there[1])
            link = Link()
            ways = [
                asyncio.create_task(self._pass_on(link, reader, there[1], of_server=False)),
                asyncio.create_task(self._pass_on(link, there[0], writer, of_server=True)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass
        finally:
            for end in ends:
                self._writers.discard(end)
                end.close()

    async def _pass_on(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, of_server: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                if self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                if of_server and self.drops_commits and COMMITTED in data:
                    self.drops_commits -= 1
                    return
                if not of_server and self.swallows_from and self.swallows_from in data:
                    self.swallows_from = None
                    self._passes.clear()
                await self._passes.wait()
                if not link.passes(data, self.silence, of_server=of_server):
                    # Read to its end: a client that gives up ends its session.
                    continue
                writer.write(data)
                await writer.drain()

    def __enter__(self) -> Self:
        self._loop.run(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._loop.run(self._stop(self._server))
        self._loop.close()

    async def _stop(self, server: asyncio.Server) -> None:
        server.close()
        await self._cut(reset=False)
