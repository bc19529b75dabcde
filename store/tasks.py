"""What beat starts for the store."""

from celery import shared_task

from store import loops
from store import segments as life


@shared_task(name="store.segments")
def segments() -> None:
    """Prepares, rolls and drops segments."""
    loops.run(life.run(), limit_seconds=600)
