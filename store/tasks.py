"""The store's periodic tasks."""

from celery import shared_task

from store.cells import cells
from store.db import event_loop
from store.notices import heartbeats
from store.segments import lifecycle


@shared_task(name="store.segments.lifecycle")
def segments() -> None:
    """Prepares, rolls and drops segments."""
    event_loop.run(cells.in_each(lifecycle.run), limit_seconds=600)


@shared_task(name="store.heartbeat")
def heartbeat() -> None:
    """Writes a heartbeat, because a task of beat has reached this worker."""
    event_loop.run(heartbeats.beat("worker"), limit_seconds=10)
