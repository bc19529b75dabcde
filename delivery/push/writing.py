"""Writes the acks and nacks of pushed messages, again while the broker is busy: the server has handled the messages."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from store.errors import Refusal

logger = structlog.stdlib.get_logger(__name__)

# The invisible time of a call's messages is the call's time-out plus this time, in which the acks are written.
SETTLE_SECONDS = 20.0
LAST_TRY_SECONDS = SETTLE_SECONDS - 8.0
PAUSE_SECONDS = 0.5


async def until_written(write: Callable[[], Awaitable[object]], subscription: str) -> None:
    """Calls `write`, and repeats it after a temporary refusal while the messages are still hidden for long enough.

    Without the write the messages would be delivered again when their invisible time is over, and count a retry. Raises
    the last refusal.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + LAST_TRY_SECONDS
    while True:
        try:
            await write()
            return
        except Refusal as refusal:
            if not refusal.is_for_now or loop.time() >= until:
                raise
            logger.info("pushed messages wait to be settled", subscription=subscription, reason=refusal.detail)
        await asyncio.sleep(PAUSE_SECONDS)
