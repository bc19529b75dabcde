"""What beat starts for the store."""

from celery import shared_task

from store.db import event_loop
from store.segments import lifecycle as life


@shared_task(name="store.segments.lifecycle")
def segments() -> None:
    """Prepares, rolls and drops segments."""
    event_loop.run(life.run(), limit_seconds=600)
