"""Hearing notices of a channel: read as long as they stay few. Any role that may connect to a database may notify every
channel there, as often and with as much as it likes.
"""

import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import psycopg

# What a listener takes at once, and what it may go on to take. Twenty busy web processes notify each other of 400 kB a
# second at most, and of a tenth of that as a rule.
BURST_BYTES = 2 * 1024 * 1024
BYTES_PER_SECOND = 512 * 1024
# Of each notice beside its payload: the work for many small ones is bounded, too.
NOTICE_BYTES = 128
# So long a listener that was flooded does not listen. What waits for notices looks by itself meanwhile.
DEAF_SECONDS = 30.0


class Flooded(Exception):
    """More notices came than a listener takes: it closes its session, and does not listen for DEAF_SECONDS."""


class Hearing:
    """The notices of one connection, which nothing else uses: what came during another statement would be kept."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._left: float = BURST_BYTES
        self._counted_at = time.monotonic()

    async def notices(self, seconds: float) -> AsyncIterator[psycopg.Notify]:
        """What comes within so many seconds. Raises Flooded."""
        async with contextlib.aclosing(self._connection.notifies(timeout=seconds)) as notices:
            async for notice in notices:
                self._count(len(notice.payload) + NOTICE_BYTES)
                yield notice

    def _count(self, size: int) -> None:
        now = time.monotonic()
        self._left = min(BURST_BYTES, self._left + (now - self._counted_at) * BYTES_PER_SECOND) - size
        self._counted_at = now
        if self._left < 0:
            raise Flooded
