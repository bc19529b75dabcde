"""The tasks of delivery that beat starts."""

from celery import shared_task

from delivery import reappend as reappends
from delivery import registry
from delivery.push import pusher
from delivery.receipts import expiry
from store.cells import cells
from store.db import event_loop


@shared_task(name="delivery.expire")
def expire() -> None:
    """Retries or gives up the messages whose invisible time is over."""
    event_loop.run(cells.in_each(expiry.run), limit_seconds=60)


@shared_task(name="delivery.push")
def push() -> None:
    """Pushes the messages of subscriptions to their servers."""
    event_loop.run(cells.in_each(pusher.run), limit_seconds=20)


@shared_task(name="delivery.clean_up")
def clean_up() -> None:
    """Deletes the rows of consumer groups that were deleted."""
    event_loop.run(cells.in_each(registry.clean_up), limit_seconds=60)


@shared_task(name="delivery.reappend")
def reappend() -> None:
    """Stores the messages of deliveries in flight again before their segment is dropped."""
    event_loop.run(cells.in_each(reappends.run), limit_seconds=600)
