"""What beat starts for scheduling."""

from celery import shared_task

from scheduling import release as releases
from scheduling import renewals
from store import loops


@shared_task(name="scheduling.release")
def release() -> None:
    """Releases what is due, and what becomes due before the next tick."""
    loops.run(releases.run(ahead_seconds=2.3), limit_seconds=60)


@shared_task(name="scheduling.renew")
def renew() -> None:
    """Appends the messages of timers again whose segment goes."""
    loops.run(renewals.run(), limit_seconds=600)
