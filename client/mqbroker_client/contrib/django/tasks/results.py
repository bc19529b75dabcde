"""The rows of tasks in the program's own database, and the results that the task framework makes of them."""

from collections.abc import Mapping
from datetime import timedelta
from traceback import format_exception
from typing import Any

from django.apps import apps
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from mqbroker_client.barrier.dialects import KEPT_DAYS, PURGE_ROWS
from mqbroker_client.contrib.django.apps import LABEL, config
from mqbroker_client.contrib.django.tasks.framework import Task, TaskError, TaskResult, TaskResultStatus

# The most errors in a row, and the most characters of a traceback. The last errors and characters are kept.
ERRORS = 20
TRACEBACK_CHARACTERS = 10_000


def rows(alias: str) -> Any:
    """The rows in a database. A function, because a module of tasks may be imported before the models."""
    return apps.get_model(LABEL, "TaskRow")._default_manager.using(alias)


def result_of(row: Any) -> "TaskResult[Any]":
    """The task result that a row contains. Raises ImportError if the task's function no longer exists."""
    task = import_string(row.path)
    if not isinstance(task, Task):
        raise ImportError(f"{row.path} is not a task")
    result: TaskResult[Any] = TaskResult(
        task=task.using(priority=row.priority, queue_name=row.queue_name, run_after=row.run_after, backend=row.backend),
        id=row.id,
        status=TaskResultStatus(row.status),
        enqueued_at=row.enqueued_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        last_attempted_at=row.last_attempted_at,
        args=row.args,
        kwargs=row.kwargs,
        backend=row.backend,
        errors=[TaskError(**error) for error in row.errors],
        worker_ids=list(row.worker_ids),
    )
    object.__setattr__(result, "_return_value", row.return_value)
    return result


def begin(alias: str, call: Mapping[str, Any], worker_id: str) -> Any:
    """The row of a task whose next attempt begins; None if the task has succeeded before.

    Makes the row from the task's message if it is missing, for example because it was purged.
    """
    now = timezone.now()
    own = rows(alias).filter(id=call["id"])
    with transaction.atomic(using=alias):
        # The transaction begins with a write: it locks the row, and in SQLite a transaction that reads first may not
        # write afterwards.
        begun = {"status": TaskResultStatus.RUNNING.value, "last_attempted_at": now, "finished_at": None}
        if not own.exclude(status=TaskResultStatus.SUCCESSFUL.value).update(**begun):
            if own.exists():
                return None
            rows(alias).create(**{**call, **begun})
        row = own.get()
        row.started_at, row.worker_ids = row.started_at or now, [*row.worker_ids, worker_id]
        row.save(using=alias, update_fields=["started_at", "worker_ids"])
    return row


def succeed(row: Any, value: object) -> None:
    """Writes the return value, in the open transaction if there is one."""
    row.status, row.finished_at, row.return_value = TaskResultStatus.SUCCESSFUL, timezone.now(), value
    row.save(using=row._state.db, update_fields=["status", "finished_at", "return_value"])


def fail(row: Any, error: BaseException, *, is_last: bool) -> None:
    """Writes the error of an attempt. After the last attempt the task has failed, else it is ready again."""
    path = f"{type(error).__module__}.{type(error).__qualname__}"
    traceback = "".join(format_exception(error))[-TRACEBACK_CHARACTERS:].replace("\0", "\N{REPLACEMENT CHARACTER}")
    row.errors = [*row.errors, {"exception_class_path": path, "traceback": traceback}][-ERRORS:]
    row.status = TaskResultStatus.FAILED if is_last else TaskResultStatus.READY
    row.finished_at, row.return_value = timezone.now() if is_last else None, None
    row.save(using=row._state.db, update_fields=["errors", "status", "finished_at", "return_value"])


def purge() -> int:
    """Deletes at most 1,000 rows per database of tasks that ended more than 14 days ago; returns their number."""
    deleted = 0
    for alias in config().options.databases:
        old = rows(alias).filter(finished_at__lt=timezone.now() - timedelta(days=KEPT_DAYS)).order_by("finished_at")
        ids = list(old.values_list("id", flat=True)[:PURGE_ROWS])
        deleted += rows(alias).filter(id__in=ids).delete()[0]
    return deleted
