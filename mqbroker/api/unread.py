"""Large answers that lie whole in memory until their callers have read them: so many bytes at most, in each process."""

import asyncio
import contextlib

import structlog

from mqbroker.wire.arriving import Gone
from mqbroker.wire.exchange import Exchange
from mqbroker.wire.heads import Headers

logger = structlog.stdlib.get_logger(__name__)

# What is no larger is handed to its socket without more ado, which takes most of it.
SMALL_BYTES = 64 * 1024
MOST_BYTES = 16 * 1024 * 1024


class Unread:
    """The large answers of one process that are under way, the oldest first.

    What an answer says has been done, and its bytes are there: it can neither wait nor be refused. So the answer that
    was begun first is cut where another one finds no room: its caller has had the longest time to read it.
    """

    def __init__(self) -> None:
        self._sizes: dict[asyncio.Future[None], int] = {}
        self._bytes = 0

    async def send(self, exchange: Exchange, status: int, headers: Headers, content: bytes) -> bool:
        """Sends an answer, and returns when it has left, but for a few bytes; False when it is given up instead."""
        size = len(content)
        length = (b"content-length", b"%d" % size)
        is_cut = asyncio.get_running_loop().create_future()
        self._sizes[is_cut] = size
        self._bytes += size
        self._cut()
        exchange.start(status, (*headers, (b"x-request-id", exchange.request_id), length))
        sending = asyncio.ensure_future(exchange.send(content))
        try:
            await asyncio.wait((sending, is_cut), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                exchange.end()
            else:
                exchange.cut()
            return sending.done()
        finally:
            sending.cancel()
            with contextlib.suppress(Gone, asyncio.CancelledError):
                await sending
            self._bytes -= self._sizes.pop(is_cut, 0)

    def _cut(self) -> None:
        """Gives up the oldest answers while there are too many bytes, but not the newest one."""
        while self._bytes > MOST_BYTES and len(self._sizes) > 1:
            is_cut = next(iter(self._sizes))
            self._bytes -= self._sizes.pop(is_cut)
            logger.warning("an answer is given up: its caller does not read, and others need its room")
            if not is_cut.done():
                is_cut.set_result(None)
