"""The periodic work of scheduling."""

from celery import shared_task

from scheduling import reappend
from scheduling import release as releases
from store.db import event_loop


@shared_task(name="scheduling.release")
def release() -> None:
    event_loop.run(releases.run(ahead_seconds=2.3), limit_seconds=60)


@shared_task(name="scheduling.renew")
def renew() -> None:
    """Reappends the messages of timers."""
    event_loop.run(reappend.run(), limit_seconds=600)
