"""The reading side of a connection: when its socket is read, how much in a turn, and which bytes are dropped."""

import asyncio

from mqbroker.wire.basis.meaning import Malformed
from mqbroker.wire.reader import Reader

# uvloop reads up to 32 times in a turn, as long as each read fills its buffer of 256,000 bytes: 8 MB from one caller,
# for which all others wait 25 ms. After a piece of this size the rest stays in the socket until the next turn.
TURN_BYTES = 128 * 1024
# How many bytes are read and dropped after bytes that are no request.
DROPPED_OF_NONE_BYTES = 1024 * 1024


class ReadSide:
    """The reading side of one connection: the bytes that it reads from the socket."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        # Whether the connection wants more bytes, because it has served enough requests.
        self.is_wanted = True

    def want(self, is_wanted: bool) -> None:
        """Starts or stops reading the socket."""
        if is_wanted != self.is_wanted and not self._transport.is_closing():
            self.is_wanted = is_wanted
            if is_wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def rest(self) -> None:
        """Stops reading in this turn of the event loop."""
        if self.is_wanted and not self._transport.is_closing():
            self._transport.pause_reading()
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self.is_wanted and not self._transport.is_closing():
            self._transport.resume_reading()


class Dropping:
    """Reads and drops the rest of a refused body, or of bytes that are no request."""

    def __init__(self, reader: Reader, most_bytes: int, *, is_malformed: bool) -> None:
        self._reader = reader
        self._left = DROPPED_OF_NONE_BYTES if is_malformed else most_bytes
        self._whole = reader.count
        # Bytes that are no request have no end that could be found.
        self._is_read = not is_malformed

    def take(self, data: bytes, most: int) -> None:
        """Drops bytes that have arrived, after reading at most this number of frames to find the end of the body."""
        self._left -= len(data)
        if self._is_read:
            try:
                self._reader.feed(data, most)
            except Malformed:
                self._is_read = self._reader.is_behind = False
                self._left = DROPPED_OF_NONE_BYTES

    @property
    def is_over(self) -> bool:
        """Whether the body has ended, or enough was dropped."""
        return self._left < 0 or self._reader.count > self._whole
