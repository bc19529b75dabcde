"""The task of analytics that beat starts."""

from celery import shared_task

from analytics.nightly import runs
from store.db import event_loop


@shared_task(name="analytics.nightly")
def nightly() -> None:
    """Starts the nightly export when it is due. The export itself runs in its own process, not as a task."""
    event_loop.run(runs.begin_due(), limit_seconds=30)
