"""All connections of one process: their limit, and the closing of connections that wait too long."""

import asyncio
from email.utils import formatdate
from time import perf_counter

from mqbroker.wire.admission import Admission, Serve
from mqbroker.wire.connection import Connection
from mqbroker.wire.room import Room

MAX_DROPPING = 32
# The most bytes of requests that wait for earlier requests of their connections, and of unparsed bytes.
MAX_WAITING_BYTES = 16 * 1024 * 1024
# How many seconds of a turn of the event loop are spent on connections that have sent many frames.
LATER_SECONDS = 0.001
# At the end of the process a new connection has this time to send its first request.
FIRST_REQUEST_SECONDS = 0.1


class Connections:
    """The open connections of one process, and their limits."""

    def __init__(self, serve: Serve, room: Room) -> None:
        self.serve = serve
        self.admission = Admission(serve)
        self._room = room
        # The open connections, each with the address for which its place was taken.
        self._open: dict[Connection, str] = {}
        self._dropping = 0
        self._waiting_bytes = 0
        # The connections that have more bytes to read, each once, in the order of their turns.
        self._later: dict[Connection, None] = {}
        self._is_scheduled = False
        # Whether connections are not kept for further requests, because the process ends.
        self.is_closing = False
        self.date = b""
        self.tick(asyncio.get_running_loop().time())

    def __call__(self) -> Connection:
        return Connection(self)

    def add(self, connection: Connection) -> bool:
        """Adds a connection. False if there is no room for it."""
        host, _ = connection.client or ("", 0)
        if not self._room.take(host):
            return False
        self._open[connection] = host
        return True

    @property
    def count(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def discard(self, connection: Connection) -> None:
        host = self._open.pop(connection, None)
        if host is not None:
            self._room.give_back(host)

    @property
    def is_short(self) -> bool:
        """Whether there is no more room for requests that wait for earlier requests of their connections."""
        return self._waiting_bytes > MAX_WAITING_BYTES

    def hold(self, size: int) -> bool:
        """Counts bytes of requests that wait for earlier requests. False if there is no room for the bytes."""
        self._waiting_bytes += size
        return not self.is_short

    def read_later(self, connection: Connection) -> None:
        """Calls `go_on` of a connection that has sent many frames, when it is this connection's turn.

        Without turns, 400 callers with 20,000 chunks of one byte each made others wait for 1.6 s: a chunk takes as long
        as 4 KB.
        """
        self._later[connection] = None
        self._schedule()

    def _schedule(self) -> None:
        if self._later and not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        self._is_scheduled = False
        until = perf_counter() + LATER_SECONDS
        while self._later and perf_counter() < until:
            connection = next(iter(self._later))
            del self._later[connection]
            connection.go_on()
        self._schedule()

    def begin_dropping(self) -> bool:
        """Whether another refused body may be read and dropped now."""
        is_allowed = self._dropping < MAX_DROPPING
        self._dropping += is_allowed
        return is_allowed

    def end_dropping(self) -> None:
        self._dropping -= 1

    def tick(self, now: float) -> None:
        """Called once a second: renews the date for answers, and closes connections that wait too long."""
        self.date = formatdate(usegmt=True).encode()
        self.admission.go_on()
        for connection in list(self._open):
            connection.sweep(now)

    async def close(self, seconds: float) -> None:
        """Closes all connections. Running requests are answered within `seconds`, or aborted."""
        self.is_closing = True
        new = [connection for connection in self._open if connection.is_new]
        for connection in set(self._open).difference(new):
            connection.finish()
        self.admission.begin_all()
        if new:
            # The first request of a new connection may be on its way. Without an answer its caller would not know
            # whether to repeat it.
            await asyncio.sleep(FIRST_REQUEST_SECONDS)
            for connection in new:
                connection.finish()
            self.admission.begin_all()
        under_way = [connection.ended() for connection in self._open]
        if under_way:
            await asyncio.wait([asyncio.ensure_future(one) for one in under_way], timeout=seconds)
        for connection in list(self._open):
            connection.abort()
