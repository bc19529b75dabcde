"""The tasks of scheduling that beat starts."""

from celery import shared_task

from scheduling import reappend as reappends
from scheduling import release as releases
from store.cells import cells
from store.db import event_loop


@shared_task(name="scheduling.release")
def release() -> None:
    """Releases messages that are due, or become due before the next tick, which comes after 2 s."""
    event_loop.run(cells.in_each(lambda: releases.run(ahead_seconds=2.3)), limit_seconds=60)


@shared_task(name="scheduling.reappend")
def reappend() -> None:
    """Stores the messages of timers again before their segment is dropped."""
    event_loop.run(cells.in_each(reappends.run), limit_seconds=600)
