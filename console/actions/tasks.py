"""The task of actions that beat starts."""

from celery import shared_task

from console.actions import jobs
from store.db import event_loop
from store.process import runtime
from store.process.runtime import CONTROL

CALL_SECONDS = 60


@shared_task(name="actions.run")
def run() -> None:
    """Continues the running actions."""
    with runtime.in_cell(CONTROL):
        jobs.run(lambda work: event_loop.run(work, limit_seconds=CALL_SECONDS))
