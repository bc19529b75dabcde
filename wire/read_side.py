"""The reading side: whether the socket of a connection is read, and how much of it in one turn of the event loop."""

import asyncio

# uvloop reads on in the same turn, up to 32 times, while each read fills its buffer of 256,000 bytes: 8 MB of one
# caller, for which all others wait 25 ms. Behind a piece of this size the rest waits in the socket for the next turn.
TURN_BYTES = 128 * 1024


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
