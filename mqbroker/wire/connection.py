"""A connection: one caller's requests, served one after the other in the event loop of the process."""

import asyncio
from collections.abc import Awaitable
from typing import cast

import structlog

from mqbroker.wire.basis.meaning import Malformed
from mqbroker.wire.basis.surroundings import Surroundings, address_of
from mqbroker.wire.exchange import Exchange
from mqbroker.wire.read_side import TURN_BYTES, Dropping, ReadSide
from mqbroker.wire.reader import FRAMES, MORE_FRAMES, Reader
from mqbroker.wire.taking import UNREAD_SECONDS, Taking

logger = structlog.stdlib.get_logger(__name__)

# A connection that waits for a request, or for the rest of a head, is closed after this.
IDLE_SECONDS = 30.0
# The most bytes of a refused caller that are dropped (four times the longest request, in 40 ms), and the longest time.
DROPPED_BYTES = 128 * 1024 * 1024
DROPPING_SECONDS = 2.0
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(asyncio.Protocol):
    """The connection of one caller.

    1. `data_received` feeds the reader, which makes an Exchange of each head.
    2. After its admission the exchange is served, in a task if it has to wait. Its body may still be arriving. Bytes
       that are not read stay in the socket.
    3. `answered`: the next exchange is served, or the connection is closed: if the caller asks for it, if a body was
       left unread, and when the process stops.
    4. Bytes that are not a request become the last exchange, which gets the status of the error in its turn.
    """

    def __init__(self, connections: "Surroundings[Connection]") -> None:
        self._connections = connections
        self._serve = connections.serve
        self._admission = connections.admission
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(self)
        self._serving: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        # A future for the end of the process: it is done when the running request has its answer.
        self._answered: asyncio.Future[None] | None = None
        # A refusal of new work that was made without an exchange and is not sent yet.
        self._refusal: bytes | None = None
        self._is_malformed = False
        # The rest of a refused body, whose bytes are dropped; None while requests are served.
        self._dropping: Dropping | None = None
        self.since = self._loop.time()

    @property
    def date(self) -> bytes:
        """The current time, as the header `date`."""
        return self._connections.date

    @property
    def client(self) -> tuple[str, int] | None:
        """The address of the caller's socket."""
        return address_of(self._transport.get_extra_info("peername"))

    @property
    def server(self) -> tuple[str, int] | None:
        """The address of this process's socket."""
        return address_of(self._transport.get_extra_info("sockname"))

    # The following methods are called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has another type than asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)
        self._taking = Taking(self._transport)
        self._reading = ReadSide(self._transport)
        if not self._connections.add(self):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._hang_up()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._reader.close()

    def eof_received(self) -> None:
        """Closes the connection: a caller that closes its sending side counts as gone."""
        self._hang_up()

    def data_received(self, data: bytes) -> None:
        if len(data) >= TURN_BYTES:
            self._reading.rest()
        if self._refusal is not None:
            self._send_refusal()
        if self._serving is None and not self._reader.head_bytes and not self._is_malformed and self._dropping is None:
            self.since = self._loop.time()
            if self._admission.is_full() and self._is_refused_unread(data):
                return
        self._read(data, FRAMES)

    def go_on(self) -> None:
        """Continues to read arrived bytes, after other connections had their turn."""
        if not self._transport.is_closing():
            self._read(b"", MORE_FRAMES)
            self._read_or_not()

    def _read(self, data: bytes, most: int) -> None:
        if self._dropping is not None:
            self._dropping.take(data, most)
            if self._dropping.is_over:
                self._transport.close()
        elif not self._is_malformed:
            try:
                self._reader.feed(data, most)
            except Malformed as problem:
                self._refuse(problem.status)
            self._serve_next()
        # Most requests arrive complete, and one at a time.
        if self._reader.waiting or self._reader.arriving is not None or self._reader.is_behind:
            self._read_or_not()

    def _is_refused_unread(self, data: bytes) -> bool:
        """Refuses new work beyond the limit, if exactly one whole request has arrived."""
        reader = self._reader
        if reader.arriving is not None or reader.is_behind or self._drained is not None or self._connections.is_closing:
            return False
        self._refusal = self._admission.refusal(data, self.date)
        if self._refusal is not None:
            self._admission.refuse_soon(self._send_refusal)
        return self._refusal is not None

    def _send_refusal(self) -> None:
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            self.write(refusal)

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()
        self._taking.begin(self._loop.time())

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
        self._serve_next()

    def _hang_up(self) -> None:
        for exchange in (self._reader.arriving, self._serving, *self._reader.waiting):
            if exchange is not None:
                exchange.hang_up()

    # The following methods are called by an exchange, or by the reader of its body.

    def hold(self, size: int) -> bool:
        return self._connections.hold(size)

    def write(self, data: bytes | memoryview) -> None:
        """Sends bytes, or keeps them until the socket takes them."""
        if not self._transport.is_closing():
            self._taking.written += len(data)
            self._transport.write(data)

    async def drained(self) -> None:
        """Waits until almost all written bytes are in the socket."""
        if self._drained is not None:
            await self._drained

    def read_on(self) -> None:
        """Reads further bytes of a body; the caller may wait for this before it sends them."""
        exchange = self._serving
        if exchange is not None and exchange.headers.get(b"expect", b"").lower() == b"100-continue":
            del exchange.headers[b"expect"]
            self.write(CONTINUE)
        self._read_or_not()

    def cut(self) -> None:
        """Closes the connection, because an answer in parts is not complete."""
        self._transport.abort()

    def answered(self, exchange: Exchange) -> None:
        """Called when the answer is complete: serves the next request, or closes the connection."""
        self._admission.go_on()
        if exchange is not self._serving:
            return
        self._serving = None
        if self._answered is not None:
            self._answered.set_result(None)
        exchange.drop()
        self.since = self._loop.time()
        if exchange.keep_alive and not self._connections.is_closing:
            if self._reader.waiting:
                self._serve_next()
            if not self._reading.is_wanted:
                self._read_or_not()
        elif exchange.is_whole:
            self._transport.close()
        else:
            self._drop_rest()

    # Serving.

    def _serve_next(self) -> None:
        if self._serving is None and self._reader.waiting and self._drained is None:
            exchange = self._serving = self._reader.next()
            self._admission.take(self, exchange)

    def begin(self, exchange: Exchange) -> None:
        """Serves an admitted exchange, in a task if it has to wait."""
        serving = self._serve(exchange)
        if serving is not None:
            self._task = self._loop.create_task(self._run(exchange, serving))

    async def _run(self, exchange: Exchange, serving: Awaitable[None]) -> None:
        try:
            await serving
        except Exception:
            logger.exception("a request failed", method=exchange.method, path=exchange.path)
        self._admission.go_on()
        if exchange is not self._serving:
            return
        self._serving = None
        if self._is_malformed and not exchange.is_started:
            self._serve_next()
        else:
            # The connection is aborted, so that the caller does not take a part of the answer for the whole answer.
            self._transport.abort()

    def _refuse(self, status: int) -> None:
        self._is_malformed, self._reader.is_behind = True, False
        if (broken := self._reader.arriving) is not None:
            broken.hang_up()
        self._reader.add(Exchange(self, "GET", b"", [], "1.1", keep_alive=False, refused_as=status))

    def _read_or_not(self) -> None:
        """Pauses reading from the socket while enough bytes have arrived. Bytes that have arrived are parsed first."""
        is_full = self._dropping is None and self._reader.is_full
        if self._reader.is_behind and not is_full:
            self._connections.read_later(self)
        self._reading.want(not is_full and not self._reader.is_behind)

    # The following methods end the connection.

    def _drop_rest(self) -> None:
        """Closes the connection when the caller has ended its request, or after the limits of dropping."""
        if self._transport.is_closing() or not self._connections.begin_dropping():
            self._transport.close()
            return
        self._dropping = Dropping(self._reader, DROPPED_BYTES, is_malformed=self._is_malformed)
        self._loop.call_later(DROPPING_SECONDS, self._end_dropping)
        self._read_or_not()

    def _end_dropping(self) -> None:
        self._connections.end_dropping()
        self._transport.close()

    def sweep(self, now: float) -> None:
        """Closes the connection if its caller has been silent for too long."""
        if self._taking.is_too_slow(now):
            logger.warning("an answer is given up: its caller reads too slowly", seconds=UNREAD_SECONDS)
            self._transport.abort()
        elif self._serving is None and self._drained is None and now - self.since > IDLE_SECONDS:
            self._transport.abort()

    @property
    def is_new(self) -> bool:
        """Whether the connection has had no request yet."""
        return self._serving is None and self._reader.count == 0

    def finish(self) -> None:
        """Closes the connection when the current answer has been sent. A request that waits is answered now."""
        self._send_refusal()
        if self._serving is None:
            self._transport.close()
        else:
            self._serving.finish()

    async def ended(self) -> None:
        """Waits until no request is served any more."""
        if self._task is not None:
            await asyncio.wait((self._task,))
        if self._serving is not None:
            self._answered = self._loop.create_future()
            await self._answered

    def abort(self) -> None:
        """Closes the connection now."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()
