"""Celery's app, and the table of periodic tasks with their intervals.

No message depends on a task: due work is a row in PostgreSQL, and a lost task only delays it.
"""

import logging.config
import os
import sys
from collections.abc import Sequence
from typing import Any

import structlog
from celery import Celery, Task, signals

from mqbroker import logs

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
# `./mq check` runs Django's checks. They import every page, which a worker and beat do not need.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

from django.conf import settings

from store.process import doors

logger = structlog.stdlib.get_logger(__name__)

OF_DOORS: Sequence[doors.Tick] = list(doors.added(doors.To.BEAT))
# Each task that runs by itself, and how often.
EVERY_SECONDS = {
    "transactions.check": 2.0,
    "transactions.discard": 5.0,
    "transactions.count": 5.0,
    "scheduling.release": 2.0,
    "delivery.expire": 3.0,
    "delivery.push": 2.0,
    "store.segments.lifecycle": 20.0,
    "store.heartbeat": 3.0,
    "scheduling.reappend": 20.0,
    "delivery.reappend": 20.0,
    "delivery.clean_up": 60.0,
    "actions.run": 2.0,
    **{tick.task: tick.every_seconds for tick in OF_DOORS},
}
# Tasks that do not run here, because a setting that they need is missing.
NOT_HERE = {tick.task for tick in OF_DOORS if tick.needs and not getattr(settings, tick.needs)}


class Work(Task):  # type: ignore[type-arg]  # it takes no arguments where it runs
    """A periodic task. While the database is away it does nothing; its next run does the due work."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Runs the task. While the database is away it logs one line; Celery would log two traces per task and tick."""
        from mqbroker.errors import refusal_of  # Celery imports Django's apps only after this module
        from store.db import patience

        try:
            with patience.of(patience.WORK_SECONDS):
                return super().__call__(*given, **named)
        except TimeoutError:
            logger.warning("a task was ended at its limit", task=self.name)
        except Exception as problem:
            refusal = refusal_of(problem)
            if refusal is None or not refusal.is_for_now:
                raise
            logger.warning("a task could not work", task=self.name, reason=refusal.detail)


app: "Celery[Any]" = Celery("mqbroker", task_cls=Work)
app.conf.update(
    broker_url=settings.REDIS_URL,
    task_ignore_result=True,
    task_acks_late=True,
    task_serializer="json",
    accept_content=["json"],
    task_default_queue=settings.TASK_QUEUE,
    task_default_delivery_mode=1,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        # Tasks of a killed worker are repeated within seconds; with kombu's defaults this would take 100 s or more.
        "visibility_timeout": 30,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        # If Redis is away, a send fails quickly and is tried again. Meanwhile the fallback in web processes does the
        # work.
        "socket_connect_timeout": 2,
        "socket_timeout": 10,
    },
    enable_utc=True,
    timezone="UTC",
    beat_schedule={
        # A task that no worker has taken expires, because beat has sent the same task again.
        name: {"task": name, "schedule": every_seconds, "options": {"expires": max(every_seconds * 2, 5)}}
        for name, every_seconds in EVERY_SECONDS.items()
        if name not in NOT_HERE
    },
)
app.autodiscover_tasks(
    ["store", "scheduling", "transactions", "delivery", "console.actions", *(tick.package for tick in OF_DOORS)]
)


@signals.celeryd_init.connect
@signals.setup_logging.connect
def log_events(**_: Any) -> None:
    """Sets up the broker's structured logging in place of Celery's loggers."""
    logging.config.dictConfig(settings.LOGGING)
    logs.take_over()


@signals.celeryd_init.connect
def keep_quiet(**_: Any) -> None:
    """Silences the worker's signal handlers, which write to standard output without a logger."""
    vars(sys)["__stdout__"] = None


@signals.worker_ready.connect
def start(**_: Any) -> None:
    """Creates the worker's runtime before its first task: Celery sends this signal before it fetches messages."""
    from mqbroker.process import background, sealed_secrets  # Celery imports Django's apps only after this module
    from store.db import guards

    try:
        guards.require_fit("mqbroker-start")
        sealed_secrets.require_readable()
    except guards.Unfit as problem:
        raise SystemExit(str(problem)) from None
    background.start()
    background.spare_collector()
    # The handler is registered only here: a worker that never reached Redis has no runtime to close.
    signals.worker_shutting_down.connect(close)


def close(**_: Any) -> None:
    """Closes the runtime after its current batches. Only the first call acts, because Celery may repeat the signal."""
    from mqbroker.process import background  # as above

    signals.worker_shutting_down.disconnect(close)

    background.close_worker()
