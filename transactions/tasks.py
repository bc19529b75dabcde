"""The periodic tasks of transactions."""

from celery import shared_task

from store.cells import cells
from store.db import event_loop
from transactions import discards
from transactions.checks import checker
from transactions.operations import totals


@shared_task(name="transactions.check")
def check() -> None:
    """Asks producers about half messages that are due."""
    event_loop.run(cells.in_each(checker.run), limit_seconds=20)


@shared_task(name="transactions.discard")
def discard() -> None:
    """Discards half messages whose checks are used up or that are older than the retention; rolls back leftovers."""
    event_loop.run(cells.in_each(discards.run), limit_seconds=60)
    event_loop.run(cells.in_each(discards.run_outdated), limit_seconds=60)
    event_loop.run(cells.in_each(discards.roll_back_leftovers), limit_seconds=60)


@shared_task(name="transactions.count")
def count() -> None:
    """Adds the ends of transactions to the totals of their topics and producer groups."""
    event_loop.run(cells.in_each(totals.count), limit_seconds=60)
