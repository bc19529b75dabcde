"""Receives the notices of a channel, up to a rate.

The limit is needed because any role that may connect to a database may notify every channel, as often as it likes.
"""

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
from psycopg.pq import PGnotify

# The bytes of notices that a listener takes at once, and per second. Twenty busy web processes send at most 400 kB a
# second, and usually a tenth of this. Beyond the limit the listener is flooded.
BURST_BYTES = 2 * 1024 * 1024
BYTES_PER_SECOND = 512 * 1024
# Each notice counts this many bytes in addition to its payload, so that the rate also limits small notices.
NOTICE_BYTES = 128
# For how many seconds a listener that got too many notices does not listen. Requests that wait for messages read by
# themselves meanwhile.
DEAF_SECONDS = 30.0


class Flooded(Exception):
    """More notices came than the limit: the listener closes its session, and does not listen for DEAF_SECONDS."""


class Hearing:
    """The notices of one connection. Made before LISTEN, so that notices which arrive during a statement count too."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._left: float = BURST_BYTES
        self._counted_at = time.monotonic()
        self._is_flooded = False
        # Notices that came during a statement; they count for the limit too.
        self._kept: deque[psycopg.Notify] = deque()
        self._is_reading = False
        connection.pgconn.notify_handler = self._heard

    async def execute(self, statement: bytes) -> None:
        """Executes a statement without parameters and ignores its rows. Raises Flooded."""
        with self._found_flooded():
            await self._connection.execute(statement)

    async def notices(self, seconds: float) -> AsyncIterator[psycopg.Notify]:
        """The notices since the last call, and the notices that come within `seconds`. Raises Flooded."""
        while self._kept:
            yield self._kept.popleft()
        self._is_reading = True
        try:
            with self._found_flooded():
                async with contextlib.aclosing(self._connection.notifies(timeout=seconds)) as notices:
                    async for notice in notices:
                        if self._is_flooded:
                            raise Flooded
                        yield notice
        finally:
            self._is_reading = False

    @contextlib.contextmanager
    def _found_flooded(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as problem:
            if self._is_flooded:
                raise Flooded from problem
            raise
        if self._is_flooded:
            raise Flooded

    def _heard(self, notice: PGnotify) -> None:
        """The driver calls this for each notice, while it reads from the socket."""
        now = time.monotonic()
        size = len(notice.extra) + NOTICE_BYTES
        self._left = min(BURST_BYTES, self._left + (now - self._counted_at) * BYTES_PER_SECOND) - size
        self._counted_at = now
        if self._left < 0:
            if not self._is_flooded:
                self._is_flooded = True
                self._hang_up()
        elif not self._is_reading:
            self._kept.append(psycopg.Notify(notice.relname.decode(), notice.extra.decode(), notice.be_pid))

    def _hang_up(self) -> None:
        """Shuts the socket down, so that no more is read. The driver, which is reading now, finds the stream's end."""
        with socket.socket(fileno=os.dup(self._connection.pgconn.socket)) as end:
            end.shutdown(socket.SHUT_RDWR)
