"""The reading side: whether the socket of a connection is read, how much of it in a turn, and what of it is dropped."""

import asyncio

from mqbroker.wire.basis.meaning import Malformed
from mqbroker.wire.reader import Reader

# uvloop reads on in the same turn, up to 32 times, while each read fills its buffer of 256,000 bytes: 8 MB of one
# caller, for which all others wait 25 ms. Behind a piece of this size the rest waits in the socket for the next turn.
TURN_BYTES = 128 * 1024
# Behind what is no request.
DROPPED_OF_NONE_BYTES = 1024 * 1024


class ReadSide:
    """The reading side of one connection."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        # Whether enough has been served for more to be read.
        self.is_wanted = True

    def want(self, is_wanted: bool) -> None:
        """Reads, or leaves what comes in the socket."""
        if is_wanted != self.is_wanted and not self._transport.is_closing():
            self.is_wanted = is_wanted
            if is_wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def rest(self) -> None:
        """Reads no more in this turn of the event loop."""
        if self.is_wanted and not self._transport.is_closing():
            self._transport.pause_reading()
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self.is_wanted and not self._transport.is_closing():
            self._transport.resume_reading()


class Dropping:
    """The rest of a refused body, or what comes behind what is no request."""

    def __init__(self, reader: Reader, most_bytes: int, *, is_malformed: bool) -> None:
        self._reader = reader
        self._left = DROPPED_OF_NONE_BYTES if is_malformed else most_bytes
        self._whole = reader.count
        # Without a request there is no end to look for.
        self._is_read = not is_malformed

    def take(self, data: bytes, most: int) -> None:
        """Drops what has come, and reads it up to so many frames for the end of the body."""
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
