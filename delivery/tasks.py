"""What beat starts for delivery."""

from celery import shared_task

from delivery import departures, expiries, pushes, renewals
from store import loops


@shared_task(name="delivery.expire")
def expire() -> None:
    """Has the messages delivered again whose invisible time is over."""
    loops.run(expiries.run(), limit_seconds=60)


@shared_task(name="delivery.push")
def push() -> None:
    """Pushes the messages of subscriptions to their servers."""
    loops.run(pushes.run(), limit_seconds=20)


@shared_task(name="delivery.depart")
def depart() -> None:
    """Deletes what is left of consumer groups that are gone."""
    loops.run(departures.run(), limit_seconds=60)


@shared_task(name="delivery.renew")
def renew() -> None:
    """Appends the messages of deliveries in flight again whose segment goes."""
    loops.run(renewals.run(), limit_seconds=600)
