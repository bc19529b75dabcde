"""The body of a request as it arrives, and what its reader waits for."""

import asyncio
from collections import deque

# Of a body that is not read, this number of bytes at most is taken from the socket.
UNREAD_BYTES = 64 * 1024
# Shorter chunks that wait are put together: a body in chunks of two bytes would take thirty times its size.
SHORT_BYTES = 1024


class Gone(Exception):
    """The caller hung up before its body was complete, or before its answer was."""


class ProcessEnds(Gone):
    """The process ends, and the body is not complete."""


class ArrivingBody:
    """The body of a request, in the parts that have arrived and were not read."""

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
        # Whether the body has arrived whole.
        self.is_whole = False
        self.is_hung_up = False
        # The answer has begun: what comes from now on will not be read.
        self._is_started = False
        self._is_ending = False
        # No more of the body is waited for.
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
        """Whether bytes of the body are still to come, or to be read."""
        return not self.is_whole or bool(self._chunks)

    @property
    def unread_bytes(self) -> int:
        """What has arrived of the body and was not read."""
        return self._unread

    @property
    def is_full(self) -> bool:
        """Whether more of the body has arrived than should wait to be read."""
        return self._unread > UNREAD_BYTES

    def arrive(self, chunk: bytes) -> None:
        """A part of the body has arrived."""
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
        """The body has arrived whole."""
        self.is_whole = True
        if self._arrived is not None:
            self._wake()

    def drop(self) -> None:
        """What has arrived of the body will not be read."""
        self._chunks.clear()

    def hang_up(self) -> None:
        """The caller has gone."""
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
        """A future that is done as soon as the caller has hung up, or is to be answered because the process ends."""
        if self._gone is None:
            self._gone = asyncio.get_running_loop().create_future()
            if self._is_ending:
                self._gone.set_result(None)
        return self._gone

    def whole(self, most: int) -> bytes | None:
        """The body, if it has arrived whole and with at most `most` bytes, as almost all do.

        Else None, and nothing is read.
        """
        if not self.is_whole or self._unread > most:
            return None
        chunks = self._chunks
        found = bytes(chunks[0]) if len(chunks) == 1 else b"".join(chunks)
        self._unread = 0
        chunks.clear()
        return found

    async def some(self) -> None:
        """Returns when a part of the body has arrived that was not read, or all was.

        Raises Gone when the caller has hung up before, and ProcessEnds when the process ends before.
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
        """The next part of the body; empty at its end. Raises as `some`."""
        await self.some()
        if not self._chunks:
            return b""
        chunk = self._chunks.popleft()
        self._unread -= len(chunk)
        return bytes(chunk)
