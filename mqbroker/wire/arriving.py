"""The body of a request while it arrives, and the waits of its reader."""

import asyncio
from collections import deque

# The maximum bytes of an unread body in memory. Further bytes stay in the socket.
UNREAD_BYTES = 64 * 1024
# Waiting chunks that are shorter are joined: a body in chunks of two bytes would take thirty times its size in memory.
SHORT_BYTES = 1024


class Gone(Exception):
    """The caller hung up before its request body was complete, or before its answer was complete."""


class ProcessEnds(Gone):
    """The process is stopping before the body is complete."""


class ArrivingBody:
    """The parts of a request's body that have arrived and were not read yet."""

    __slots__ = (
        "_arrived",
        "_chunks",
        "_gone",
        "_is_cut",
        "_is_ending",
        "_is_started",
        "_unread",
        "is_hung_up",
        "is_whole",
    )

    def __init__(self) -> None:
        # Whether all bytes of the body have arrived.
        self.is_whole = False
        self.is_hung_up = False
        # Whether the rest of the body will stay unread, because the answer has begun.
        self._is_started = False
        self._is_ending = False
        # Whether the reader must not wait for more of the body.
        self._is_cut = False
        self._chunks: deque[bytes | bytearray] = deque()
        self._unread = 0
        self._arrived: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[object] | None = None

    def _read_on(self) -> None:
        """Reads further bytes of the body."""
        raise NotImplementedError

    @property
    def is_unread(self) -> bool:
        """Whether bytes of the body have not arrived or were not read yet."""
        return not self.is_whole or bool(self._chunks)

    @property
    def unread_bytes(self) -> int:
        """The bytes of the body that have arrived and were not read yet."""
        return self._unread

    @property
    def is_full(self) -> bool:
        """Whether the unread bytes have reached the limit, at which the socket is not read further."""
        return self._unread > UNREAD_BYTES

    def arrive(self, chunk: bytes) -> None:
        """Adds a part of the body that has arrived."""
        if self._is_started:
            return
        if self._chunks and len(chunk) < SHORT_BYTES:
            self._gather(chunk)
        else:
            self._chunks.append(chunk)
        self._unread += len(chunk)
        if self._arrived is not None:
            self._wake()

    def _gather(self, chunk: bytes) -> None:
        last = self._chunks[-1]
        if isinstance(last, bytearray):
            last += chunk
        else:
            self._chunks.append(bytearray(chunk))

    def complete(self) -> None:
        """Notes that all bytes of the body have arrived."""
        self.is_whole = True
        if self._arrived is not None:
            self._wake()

    def drop(self) -> None:
        """Drops the bytes that have arrived: the body will not be read."""
        self._chunks.clear()

    def hang_up(self) -> None:
        """Notes that the caller has hung up."""
        self.is_hung_up = True
        self._end_waits()

    def _cut(self) -> None:
        self._is_cut = True
        self._wake()

    def _end_waits(self) -> None:
        self._is_ending = True
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        self._wake()

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    @property
    def gone(self) -> asyncio.Future[object]:
        """A future that is done when the caller has hung up, or when the request must be answered now because the
        process is stopping.
        """
        if self._gone is None:
            self._gone = asyncio.get_running_loop().create_future()
            if self._is_ending:
                self._gone.set_result(None)
        return self._gone

    def whole(self, most: int) -> bytes | None:
        """The body, if it has arrived whole with at most `most` bytes, as almost all bodies have.

        Otherwise None, and nothing is read.
        """
        if not self.is_whole or self._unread > most:
            return None
        chunks = self._chunks
        found = bytes(chunks[0]) if len(chunks) == 1 else b"".join(chunks)
        self._unread = 0
        chunks.clear()
        return found

    async def some(self) -> None:
        """Waits until an unread part of the body has arrived, or the whole body was read.

        Raises Gone if the caller hangs up first, ProcessEnds if the process ends first.
        """
        while not self._chunks and not self.is_whole:
            if self.is_hung_up:
                raise Gone
            if self._is_cut:
                raise ProcessEnds
            self._read_on()
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived

    async def chunk(self) -> bytes:
        """The next part of the body; empty at its end. Raises the errors of `some`."""
        await self.some()
        if not self._chunks:
            return b""
        chunk = self._chunks.popleft()
        self._unread -= len(chunk)
        return bytes(chunk)
