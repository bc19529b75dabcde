"""Stories of the project, which this program does for a test, over a socket: each line is a list in JSON, a story and
its arguments.

Each story is a function; what it returns is written as a line of JSON.
"""

import asyncio
import json
import os
import signal
import socket
from contextlib import ExitStack, suppress
from datetime import timedelta
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections, transaction
from django.test import override_settings
from django.utils import timezone
from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.contrib.django import send
from mqbroker_client.contrib.django.apps import config
from mqbroker_client.contrib.django.tasks.framework import TaskResultDoesNotExist, task_backends
from mqbroker_client.core.producers import Producer

from tests.task_backend.project import tasks
from tests.task_backend.project.models import Order, Run


class Declined(Exception):
    """Rolls back."""


def migrate() -> None:
    for alias in settings.DATABASES:
        call_command("migrate", run_syncdb=True, database=alias, verbosity=0)


def checked(given: dict[str, Any], deploy: bool) -> list[str]:
    """What `manage.py check` reports with other settings; or the reason why it does not start."""
    own: Any = settings
    tasks = {alias: {"BACKEND": own.BACKEND, **params} for alias, params in given.get("tasks", {}).items()}
    changed: dict[str, Any] = {"TASKS": own.TASKS | tasks}
    changed["MQBROKER"] = given["instead"] if "instead" in given else own.MQBROKER | given.get("mqbroker", {})
    changed["INSTALLED_APPS"] = [name for name in own.INSTALLED_APPS if name != given.get("without")]
    before = {alias: dict(connections.databases[alias]) for alias in given.get("databases", {})}
    for alias in before:
        connections.databases[alias] |= given["databases"][alias]
    try:
        with override_settings(**changed):
            found = run_checks(include_deployment_checks=deploy)
    except ImproperlyConfigured as problem:
        return [str(problem)]
    finally:
        connections.databases.update(before)
    return [f"({each.id}) {each.msg} HINT: {each.hint}" for each in found if str(each.id).startswith("mqbroker.")]


def orders(count: int) -> Any:
    """Orders, each with a task; each third is rolled back. The numbers of the committed orders, and all ids."""
    committed: list[str] = []
    ids: list[str] = []
    for number in range(count):
        with suppress(Declined), transaction.atomic():
            order = Order._default_manager.create()
            ids.append(tasks.note.enqueue(order.pk).id)
            with suppress(Declined), transaction.atomic():
                tasks.note.enqueue(f"rolled back to the savepoint of {order.pk}")
                raise Declined
            if number % 3 == 2:
                raise Declined
            transaction.on_commit(partial(committed.append, str(order.pk)))
    return [committed, ids]


def do(way: str, commits: bool) -> None:
    """A call by its source, in a transaction that commits or is rolled back."""
    known = {"task": tasks.note, "later": timezone.now() + timedelta(seconds=1)}
    known |= {"asyncio": asyncio, "async_to_sync": async_to_sync}
    with suppress(Declined), transaction.atomic():
        eval(way, known)
        if not commits:
            raise Declined


def send_in(alias: str, topic: str) -> str:
    """A message in a transaction of a database; why it is refused, or nothing."""
    try:
        with transaction.atomic(using=alias):
            send(topic, alias, using=alias)
    except ValueError as problem:
        return str(problem)
    return ""


def enqueue(name: str, *args: Any) -> str:
    """A task by its name, outside of a transaction."""
    return str(getattr(tasks, name).enqueue(*args).id)


def enqueue_waiting(backend: str) -> str:
    """A task of another backend that waits."""
    return str(tasks.wait_at_first.using(backend=backend).enqueue(backend).id)


def die_after_commit(alias: str) -> None:
    """The program is killed when it sends the end of a transaction that has committed."""

    class Dying(Producer):
        def end(self, *args: Any, **fields: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

    steps = config().all_steps[alias]
    steps.producer = Dying(steps.producer.broker, steps.producer.group)
    task: Any = {"default": tasks.note, "other": tasks.note_elsewhere}[alias]
    with transaction.atomic(using=alias):
        task.enqueue(f"dead {alias}")


def enqueue_by(changes: dict[str, Any], *abouts: Any) -> list[str]:
    """The task `note` with changes, in one transaction."""
    with transaction.atomic():
        return [tasks.note.using(**changes).enqueue(about).id for about in abouts]


def enqueue_later(seconds: float, about: str) -> None:
    with transaction.atomic():
        tasks.note.using(run_after=timezone.now() + timedelta(seconds=seconds)).enqueue(about)


def refused(backend: str, *aliases: str) -> str:
    """Why a task is not enqueued while transactions of these databases are open."""
    with ExitStack() as stack:
        for alias in aliases:
            stack.enter_context(transaction.atomic(using=alias))
        try:
            tasks.note.using(backend=backend).enqueue("refused")
        except OutsideTransaction as problem:
            return str(problem)
    return ""


def in_other(declined: bool) -> None:
    """The task of a backend that names a database, in a transaction of this database."""
    with suppress(Declined), transaction.atomic(using="other"):
        tasks.note_elsewhere.enqueue(f"declined: {declined}")
        if declined:
            raise Declined


def result(id_: str) -> Any:
    """A result as the framework reads it."""
    try:
        found = task_backends["default"].get_result(id_)
    except TaskResultDoesNotExist:
        return None
    return {
        "status": found.status.value,
        "attempts": found.attempts,
        "errors": [[error.exception_class.__name__, error.traceback.splitlines()[-1]] for error in found.errors],
        "value": found.return_value if found.status.value == "SUCCESSFUL" else None,
        "times": [
            moment is not None
            for moment in (found.enqueued_at, found.started_at, found.last_attempted_at, found.finished_at)
        ],
        "args": found.args,
        "task": found.task.module_path.rpartition(".")[2],
    }


def runs(using: str = "default") -> list[str]:
    """What the runs that took effect were about, the first one first."""
    return list(Run._default_manager.using(using).order_by("pk").values_list("about", flat=True))


def main(place: str) -> None:
    with socket.create_server(place, family=socket.AF_UNIX) as listening:
        connection, _ = listening.accept()
    with connection, connection.makefile("rw") as lines:
        while line := lines.readline():
            story, *arguments = json.loads(line)
            print(json.dumps(globals()[story](*arguments)), file=lines, flush=True)
