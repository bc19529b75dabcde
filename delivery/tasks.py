"""What beat starts for delivery."""

from celery import shared_task

from delivery import cleanup, expiry, reappend
from delivery.push import pusher
from store.db import event_loop


@shared_task(name="delivery.expire")
def expire() -> None:
    """Has the messages delivered again whose invisible time is over."""
    event_loop.run(expiry.run(), limit_seconds=60)


@shared_task(name="delivery.push")
def push() -> None:
    """Pushes the messages of subscriptions to their servers."""
    event_loop.run(pusher.run(), limit_seconds=20)


@shared_task(name="delivery.depart")
def depart() -> None:
    """Deletes what is left of consumer groups that are gone."""
    event_loop.run(cleanup.run(), limit_seconds=60)


@shared_task(name="delivery.renew")
def renew() -> None:
    """Appends the messages of deliveries in flight again whose segment goes."""
    event_loop.run(reappend.run(), limit_seconds=600)
