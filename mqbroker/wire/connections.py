"""All connections of one process: how many there may be, and the end of those that wait too long."""

import asyncio
from email.utils import formatdate
from time import perf_counter

from mqbroker.wire.admission import Admission, Serve
from mqbroker.wire.connection import Connection
from mqbroker.wire.room import Room

MAX_DROPPING = 32
# Of requests that came before the answers to earlier ones of their connections, and of what is not parsed yet.
MAX_WAITING_BYTES = 16 * 1024 * 1024
# In a turn of the event loop, connections that have sent many frames are read for so long.
LATER_SECONDS = 0.001
# A connection that was opened just before the end of its process has so long for its first request.
FIRST_REQUEST_SECONDS = 0.1


class Connections:
    """The connections of one process."""

    def __init__(self, serve: Serve, room: Room) -> None:
        self.serve = serve
        self.admission = Admission(serve)
        self._room = room
        # With the address that each one's place was taken for.
        self._open: dict[Connection, str] = {}
        self._dropping = 0
        self._waiting_bytes = 0
        # Those that are to be read on, each once, in their order.
        self._later: dict[Connection, None] = {}
        self._is_scheduled = False
        # No connection is kept for a further request.
        self.is_closing = False
        self.date = b""
        self.tick(asyncio.get_running_loop().time())

    def __call__(self) -> Connection:
        return Connection(self)

    def add(self, connection: Connection) -> bool:
        """Whether there is room for one more."""
        host, _ = connection.client or ("", 0)
        if not self._room.take(host):
            return False
        self._open[connection] = host
        return True

    @property
    def count(self) -> int:
        """The connections that are open."""
        return len(self._open)

    def discard(self, connection: Connection) -> None:
        host = self._open.pop(connection, None)
        if host is not None:
            self._room.give_back(host)

    @property
    def is_short(self) -> bool:
        """Whether requests that wait for those before them have no more room."""
        return self._waiting_bytes > MAX_WAITING_BYTES

    def hold(self, size: int) -> bool:
        """Counts bytes of requests that wait for those before them; whether there is room for so many."""
        self._waiting_bytes += size
        return not self.is_short

    def read_later(self, connection: Connection) -> None:
        """Has a connection that has read many frames `go_on` when it is its turn.

        400 callers with 20,000 chunks of one byte each had others wait for 1.6 s: a chunk takes as long as 4 KB.
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
        """Whether one more refused body may be read and dropped."""
        is_allowed = self._dropping < MAX_DROPPING
        self._dropping += is_allowed
        return is_allowed

    def end_dropping(self) -> None:
        self._dropping -= 1

    def tick(self, now: float) -> None:
        """Once a second: the date of the answers, and the end of connections that wait too long."""
        self.date = formatdate(usegmt=True).encode()
        self.admission.go_on()
        for connection in list(self._open):
            connection.sweep(now)

    async def close(self, seconds: float) -> None:
        """Ends all connections: the requests under way are answered within so many seconds, or given up."""
        self.is_closing = True
        new = [connection for connection in self._open if connection.is_new]
        for connection in set(self._open).difference(new):
            connection.finish()
        self.admission.begin_all()
        if new:
            # Its first request may be under way: without an answer its caller would not know whether to send it again.
            await asyncio.sleep(FIRST_REQUEST_SECONDS)
            for connection in new:
                connection.finish()
            self.admission.begin_all()
        under_way = [connection.ended() for connection in self._open]
        if under_way:
            await asyncio.wait([asyncio.ensure_future(one) for one in under_way], timeout=seconds)
        for connection in list(self._open):
            connection.abort()
