"""What beat starts for transactions."""

from celery import shared_task

from store.db import event_loop
from transactions import discards
from transactions.checks import checker


@shared_task(name="transactions.check")
def check() -> None:
    """Asks producers about the halves that are due."""
    event_loop.run(checker.run(), limit_seconds=20)


@shared_task(name="transactions.discard")
def discard() -> None:
    """Sets aside the halves that were asked about in vain, or are older than the retention."""
    event_loop.run(discards.run(), limit_seconds=60)
    event_loop.run(discards.run_outdated(), limit_seconds=60)
    event_loop.run(discards.roll_back_leftovers(), limit_seconds=60)
