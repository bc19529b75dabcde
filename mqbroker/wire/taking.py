"""Measures how fast a caller reads its answers: an unread answer takes memory from other callers."""

import asyncio
import fcntl
import socket
import sys
import termios

# A caller that takes fewer bytes of its answers within this time is cut off. At this rate, 16 KiB/s, a page of 16 MiB
# takes 17 minutes. The time begins anew whenever the caller has taken this many bytes.
UNREAD_SECONDS = 20.0
UNREAD_BYTES = 320 * 1024


class Taking:
    """Measures, once a second, how many bytes of its answers the caller of a connection has read."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        # The bytes that the connection has written for its caller.
        self.written = 0
        # When this measurement began, and how many bytes the caller had taken by then; None if the caller has taken all
        # bytes.
        self._since: float | None = None
        self._taken = 0

    def begin(self, now: float) -> None:
        """Notes that bytes were written that the caller has not received yet."""
        if self._since is None:
            self._since, self._taken = now, self.written - self._unsent()

    def is_too_slow(self, now: float) -> bool:
        """Whether the caller is too slow and must be cut off."""
        if self._since is None:
            return False
        unsent = self._unsent()
        taken = self.written - unsent
        if not unsent:
            self._since = None
        elif taken - self._taken >= UNREAD_BYTES:
            self._since, self._taken = now, taken
        return self._since is not None and now - self._since > UNREAD_SECONDS

    def _unsent(self) -> int:
        """The bytes that the caller's system has not acknowledged: in the transport's buffer and in the socket."""
        kept = self._transport.get_write_buffer_size()
        return kept + in_socket(self._transport.get_extra_info("socket"))


def in_socket(of: socket.socket) -> int:
    """The bytes in the socket that are not acknowledged; 0 for a closed socket."""
    number = of.fileno()
    return 0 if number < 0 else int.from_bytes(fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
