"""The task of schedules that beat starts."""

from celery import shared_task

from scheduling.cron import firing
from store.db import event_loop


@shared_task(name="schedules.fire")
def fire() -> None:
    """Fires schedules that are due, or become due before the next tick, which comes after 2 s."""
    event_loop.run(firing.run(), limit_seconds=60)
