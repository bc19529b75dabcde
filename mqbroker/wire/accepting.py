"""Accepts connections of a listening socket, many in one turn of the event loop.

uvloop's server accepts one connection in each turn. Under load a turn takes 10 to 30 ms: of 500 callers that connected
together the last ones waited for 2 to 4 s, with their requests in the socket, while earlier callers were served.
"""

import asyncio
import contextlib
import socket
import time

import structlog

from mqbroker.wire.connections import Connections

logger = structlog.stdlib.get_logger(__name__)

# Accept rate: per turn of the event loop, one connection plus PER_SECOND × CPU time of the turn. An idle process has
# short turns and leaves connections to its siblings. A new connection whose first bytes fill the socket takes 0.3 ms
# of CPU: at this rate new connections lengthen a turn by at most two thirds. At four times the rate each turn accepted
# more connections than the turn before, up to MOST_PER_TURN, and took 40 ms.
PER_SECOND = 2000
MOST_PER_TURN = 128
# The maximum bytes that the kernel keeps unsent for each connection. Without a limit it keeps up to 4 MB for a caller
# that does not read: 1,000 such callers used up the memory for all sockets of the machine, and sends took 8 s.
MOST_UNSENT_BYTES = 128 * 1024
# The pause when file descriptors or memory are used up; otherwise the listening socket would be ready in each turn.
PAUSE_SECONDS = 0.5


class Accepting:
    """Makes a Connection for each caller of a listening socket, until `close`."""

    def __init__(self, listening: socket.socket, connections: Connections) -> None:
        self._listening = listening
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None] | None] = set()
        self._pause: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        # Accepted connections inherit this option, also on macOS. Sockets of other kinds do not have the option.
        with contextlib.suppress(AttributeError, OSError):
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MOST_UNSENT_BYTES)
        self._go_on()

    async def close(self) -> None:
        """Stops accepting. When it returns, all accepted callers have a Connection."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening.fileno())
        self._listening.close()
        if tasks := [task for task in self._tasks if task is not None]:
            await asyncio.wait(tasks)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        if self._take_in():
            self._loop.call_soon(self._accept_more, time.thread_time())

    def _accept_more(self, since: float) -> None:
        """Accepts further callers at the end of a turn in which one came. `began`: the CPU time at the turn's start."""
        more = int((time.thread_time() - since) * PER_SECOND)
        for _ in range(min(more, MOST_PER_TURN)):
            if not self._take_in():
                return

    def _take_in(self) -> bool:
        """Accepts one caller. Returns False if no caller was waiting."""
        if self._listening.fileno() < 0:
            return False
        try:
            caller, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as problem:
            logger.warning("no caller can be taken in", problem=str(problem), again_after_seconds=PAUSE_SECONDS)
            self._loop.remove_reader(self._listening.fileno())
            self._pause = self._pause or self._loop.call_later(PAUSE_SECONDS, self._go_on)
            return False
        self._tasks.add(self._loop.create_task(self._connect(caller)))
        return True

    async def _connect(self, caller: socket.socket) -> None:
        # The caller hung up before it was accepted.
        with contextlib.suppress(OSError):
            caller.setblocking(False)
            await self._loop.connect_accepted_socket(self._connections, caller)
        self._tasks.discard(asyncio.current_task())
