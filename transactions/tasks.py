"""What beat starts for transactions."""

from celery import shared_task

from store import loops
from transactions import checks, discards, leftovers


@shared_task(name="transactions.check")
def check() -> None:
    """Asks producers about the halves that are due."""
    loops.run(checks.run(), limit_seconds=20)


@shared_task(name="transactions.discard")
def discard() -> None:
    """Sets aside the halves that were asked about in vain, or are older than the retention."""
    loops.run(discards.run(), limit_seconds=60)
    loops.run(discards.run_outdated(), limit_seconds=60)
    loops.run(leftovers.run(), limit_seconds=60)
