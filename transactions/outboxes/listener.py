"""Listens for notices of an outbox's producers, in a separate session: a flood of notices ends only this session."""

import asyncio
import contextlib

import psycopg
import structlog

from store.errors import Refusal
from store.notices.hearing import DEAF_SECONDS, Flooded, Hearing
from transactions.outboxes.rows import Listed
from transactions.outboxes.sessions import connect

logger = structlog.stdlib.get_logger(__name__)

CHANNEL = "mqbroker_outbox"
LOOK_SECONDS = 30.0
RECONNECT_SECONDS = 5.0
# The longest wait for a notice: finds rows that were committed just before the wait, and rows behind a proxy without
# notices.
POLL_SECONDS = 1.0
# The wait for the next look if no notices arrive: with two-phase transactions, and after a flood of notices.
UNHEARD_POLL_SECONDS = 0.25


class Listener:
    """Waits until a producer notifies. The drain finds rows without a notice by itself."""

    def __init__(self, listed: Listed) -> None:
        self._listed = listed
        self._called = asyncio.Event()
        self._hears = False

    @property
    def hears(self) -> bool:
        """Whether the listener receives the notices of producers."""
        return self._hears

    @property
    def poll_seconds(self) -> float:
        """How long a drain that has found no row may wait for a notice."""
        return POLL_SECONDS if self._hears else UNHEARD_POLL_SECONDS

    async def wait(self, seconds: float) -> None:
        """Waits until a producer notifies, at most `seconds`. Returns at once if a notice came since `forget`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._called.wait()

    def forget(self) -> None:
        """Drops the notices so far: a turn that begins now can see the rows that these notices announce."""
        self._called.clear()

    async def forever(self) -> None:
        """Listens until it is cancelled."""
        while True:
            pause = RECONNECT_SECONDS
            try:
                await self._listen()
            except Flooded:
                pause = DEAF_SECONDS
                logger.warning("an outbox's channel is flooded, it is polled", outbox=self._listed.name)
            except (psycopg.Error, OSError, Refusal) as problem:
                # The drain meets the same problem on its own connection, and records it as the outbox's failure.
                logger.info("not listening to an outbox", outbox=self._listed.name, problem=type(problem).__name__)
            self._hears = False
            await asyncio.sleep(pause)

    async def _listen(self) -> None:
        connection = await connect(self._listed.url, "mqbroker-outbox-listener")
        try:
            hearing = Hearing(connection)
            await hearing.execute(f"LISTEN {CHANNEL}".encode())
            self._hears = True
            while True:
                async for _ in hearing.notices(LOOK_SECONDS):
                    self._called.set()
                # Finds out whether the connection has broken silently. An empty statement needs no plan.
                await hearing.execute(b"")
        finally:
            await connection.close()
