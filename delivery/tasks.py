"""What beat starts for delivery."""

from celery import shared_task

from delivery import expiries
from store import loops


@shared_task(name="delivery.expire")
def expire() -> None:
    """Has the messages delivered again whose invisible time is over."""
    loops.run(expiries.run(), limit_seconds=60)
