"""The store's periodic tasks."""

from celery import shared_task

from store.db import event_loop
from store.segments import lifecycle


@shared_task(name="store.segments.lifecycle")
def segments() -> None:
    """Prepares, rolls and drops segments."""
    event_loop.run(lifecycle.run(), limit_seconds=600)
