"""Jobs of django-tasks-db: one `enqueue` for each job, and several workers, which run one job at a time."""

import threading
import time

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from psycopg import conninfo

from tools.bench.jobs import DATABASE_URL, PRODUCERS, Times, due_times

_PARTS = conninfo.conninfo_to_dict(DATABASE_URL)
settings.configure(
    INSTALLED_APPS=["django_tasks", "django_tasks_db"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": _PARTS.get("dbname"),
            "USER": _PARTS.get("user"),
            "PASSWORD": _PARTS.get("password"),
            "HOST": _PARTS.get("host"),
            "PORT": _PARTS.get("port"),
            "CONN_MAX_AGE": None,
        }
    },
    TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}},
    USE_TZ=True,
)
django.setup()

from django_tasks import task  # noqa: E402  # imported after Django is set up

NOTED: list[Times] = []


@task()
def job(due: float) -> None:
    """The job: writes into the file that it runs."""
    NOTED[0].note(due)


def prepare() -> None:
    """Creates the tables."""
    call_command("migrate", verbosity=0)


def produce() -> None:
    """Enqueues jobs until the process is stopped."""
    times = Times("produce")

    def producer(number: int) -> None:
        for due in due_times(number):
            time.sleep(max(0.0, due - time.time()))
            job.enqueue(due)
            times.note(due)
        connection.close()

    producers = [threading.Thread(target=producer, args=(number,)) for number in range(PRODUCERS)]
    for thread in producers:
        thread.start()
    for thread in producers:
        thread.join()


def consume() -> None:
    """Runs jobs until the process is stopped."""
    NOTED.append(Times("consume"))
    call_command("db_worker", interval=0.02, reload=False, verbosity=0)
