"""How fast a caller takes its answers: what an answer holds keeps others from reading."""

import asyncio
import fcntl
import socket
import sys
import termios

# A caller that takes less than so much of its answers in so long is given up. That is 16 KiB/s, with which a page of
# 16 MiB takes 17 minutes; time is counted from the last bytes that it took so many of, not from the answer's beginning.
UNREAD_SECONDS = 20.0
UNREAD_BYTES = 320 * 1024


class Taking:
    """The bytes of one connection's answers that its caller has taken. It is looked at once a second."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        # What the connection has sent, or keeps for its caller.
        self.written = 0
        # Since when, and after how many bytes, the caller is waited for; None while it has taken all.
        self._since: float | None = None
        self._taken = 0

    def begin(self, now: float) -> None:
        """The caller has not taken what was written as fast as it was."""
        if self._since is None:
            self._since, self._taken = now, self.written - self._unsent()

    def is_too_slow(self, now: float) -> bool:
        """Whether the caller is to be given up."""
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
        """The bytes that the other end has not acknowledged: those kept here, and those in the socket."""
        kept = self._transport.get_write_buffer_size()
        return kept + in_socket(self._transport.get_extra_info("socket"))


def in_socket(of: socket.socket) -> int:
    """The bytes that were sent and not acknowledged; 0 of a socket that is closed."""
    number = of.fileno()
    return 0 if number < 0 else int.from_bytes(fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
