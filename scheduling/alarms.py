"""Soon: what a process itself has delayed by less than a beat's tick, it releases itself, to the millisecond.

The tick that is under way may have looked before the message was there. Nothing depends on this: what is missed here, a
tick releases.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from store.commit.batch import Batch
from store.errors import Refusal

logger = structlog.stdlib.get_logger(__name__)

HORIZON_SECONDS = 3.5
# Releases that are nearer to each other are one.
BUCKET_SECONDS = 0.005

_buckets: set[int] = set()
_task: asyncio.Task[None] | None = None
_asked_again = False
_release: Callable[[], Awaitable[object]] | None = None


def release_by(release: Callable[[], Awaitable[object]]) -> None:
    """Names the function that releases what is due; until then nothing is expected here."""
    global _release
    _release = release


def expect(batch: Batch, seconds: float) -> None:
    """Expects something to be due so many seconds from the batch's commit on, when that is soon."""
    if _release is not None and seconds <= HORIZON_SECONDS:
        batch.after_commit(lambda: _schedule(seconds))


def _schedule(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    bucket = int((loop.time() + seconds) / BUCKET_SECONDS) + 1
    if bucket not in _buckets:
        _buckets.add(bucket)
        loop.call_at(bucket * BUCKET_SECONDS, _start, bucket)


def _start(bucket: int) -> None:
    """Releases now, one release at a time: it looks until nothing is due, and once more if it was asked meanwhile."""
    global _task, _asked_again
    _buckets.discard(bucket)
    if _task is None or _task.done():
        _task = asyncio.get_running_loop().create_task(_run(), name="release soon")
    else:
        _asked_again = True


async def _run() -> None:
    global _asked_again
    assert _release is not None
    try:
        await _release()
        while _asked_again:
            _asked_again = False
            await _release()
    except Refusal as refusal:
        logger.info("a release is left to the next tick", reason=refusal.detail)
