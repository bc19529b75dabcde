"""Limits the bytes of large answers in each process that callers have not read yet."""

import asyncio

import structlog

from mqbroker.wire.arriving import Gone
from mqbroker.wire.exchange import Exchange
from mqbroker.wire.heads import Headers

logger = structlog.stdlib.get_logger(__name__)

# Answers up to this size are not counted: most of their bytes go into the socket at once.
SMALL_BYTES = 64 * 1024
MOST_BYTES = 16 * 1024 * 1024


class Unread:
    """The large answers that one process is sending, the oldest first.

    An answer reports finished work and is already in memory, so it can neither wait nor be refused. If there is no room
    for a new answer, the oldest answer is aborted, because its caller has had the longest time to read.
    """

    def __init__(self) -> None:
        self._sizes: dict[asyncio.Future[None], int] = {}
        self._bytes = 0

    async def send(self, exchange: Exchange, status: int, headers: Headers, content: bytes) -> bool:
        """Sends an answer, and waits until almost all its bytes are in the socket.

        Returns False if the answer was aborted instead.
        """
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
            # `wait` raises no exception of `sending`: an exception would keep this frame, its task and the answer in a
            # reference cycle until the next garbage collection.
            await asyncio.wait((sending,))
            if not sending.cancelled() and (failure := sending.exception()) and not isinstance(failure, Gone):
                raise failure
            self._bytes -= self._sizes.pop(is_cut, 0)

    def _cut(self) -> None:
        """Aborts the oldest answers while there are too many bytes, but never the newest answer."""
        while self._bytes > MOST_BYTES and len(self._sizes) > 1:
            is_cut = next(iter(self._sizes))
            self._bytes -= self._sizes.pop(is_cut)
            logger.warning("an answer is given up: its caller does not read, and others need its room")
            if not is_cut.done():
                is_cut.set_result(None)
