"""Hearing notices of a channel: read as long as they stay few. Any role that may connect to a database may notify every
channel there, as often and with as much as it likes.
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
    """The notices of one connection, made before it listens: a server sends what waits before it answers a statement,
    and the driver would keep all of that.
    """

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._left: float = BURST_BYTES
        self._counted_at = time.monotonic()
        self._is_flooded = False
        # What came during a statement; as everything it is counted.
        self._kept: deque[psycopg.Notify] = deque()
        self._is_reading = False
        connection.pgconn.notify_handler = self._heard

    async def execute(self, statement: bytes) -> None:
        """Executes a statement without parameters, whose rows are not asked for. Raises Flooded."""
        with self._found_flooded():
            await self._connection.execute(statement)

    async def notices(self, seconds: float) -> AsyncIterator[psycopg.Notify]:
        """What came since the last time, and what comes within so many seconds. Raises Flooded."""
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
        """Of each notice, in the middle of the driver's reading."""
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
        """What the server has still to send is not read. The driver is reading just now: it finds the end by itself."""
        with socket.socket(fileno=os.dup(self._connection.pgconn.socket)) as end:
            end.shutdown(socket.SHUT_RDWR)
