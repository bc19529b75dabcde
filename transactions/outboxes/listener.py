"""Hears the producers of an outbox, by a session of its own: a flood of the channel ends that session alone."""

import asyncio
import contextlib

import psycopg
import structlog

from store.errors import Refusal
from store.notices.hearing import DEAF_SECONDS, Flooded, Hearing
from transactions.outboxes.rows import Listed
from transactions.outboxes.source import connect

logger = structlog.stdlib.get_logger(__name__)

CHANNEL = "mqbroker_outbox"
LOOK_SECONDS = 30.0
RECONNECT_SECONDS = 5.0
# Finds what was committed between a look and the sleep; and where a proxy passes no notices.
POLL_SECONDS = 1.0
# While nothing is heard: of transactions of two phases, and behind a flood.
UNHEARD_POLL_SECONDS = 0.25


class Listener:
    """Waits until a producer notifies. What it does not hear, the drain finds by itself."""

    def __init__(self, listed: Listed) -> None:
        self._listed = listed
        self._called = asyncio.Event()
        self._hears = False

    @property
    def poll_seconds(self) -> float:
        """How long a drain that has found nothing may wait for a notice."""
        return POLL_SECONDS if self._hears else UNHEARD_POLL_SECONDS

    async def wait(self, seconds: float) -> None:
        """Waits until a producer notifies, for so long at most. What came since the last wait counts, too."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._called.wait()
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
                # The drain meets the same problem, and notes it.
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
                # A connection that has broken silently brings no notice either.
                await hearing.execute(b"SELECT 1")
        finally:
            await connection.close()
