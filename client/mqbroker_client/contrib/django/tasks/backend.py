"""The task backend: enqueues a task as a message of the open transaction, and reads results."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.checks import CheckMessage
from django.db import connections, transaction
from django.utils import timezone

from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.contrib.django.apps import config
from mqbroker_client.contrib.django.outbox import send
from mqbroker_client.contrib.django.tasks import checks, results
from mqbroker_client.contrib.django.tasks.framework import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
)
from mqbroker_client.contrib.django.tasks.options import BackendOptions, queue_names
from mqbroker_client.core.ids import uuid7


class Backend(BaseTaskBackend):
    """Tasks as messages: `TASKS = {"default": {"BACKEND": "mqbroker_client.contrib.django.tasks.Backend"}}`."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    #: Priorities have three levels: above 0, 0 and below 0. A worker takes the tasks of a level in the order of their
    #: commits.
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        #: QUEUES in the order of the setting.
        self.queue_names = queue_names(alias, params.get("QUEUES", ["default"]))
        super().__init__(alias, params)
        self.own = BackendOptions.read(alias, self.options)

    def enqueue(self, task: "Task[Any, Any]", args: Sequence[Any], kwargs: Mapping[str, Any]) -> "TaskResult[Any]":
        """Stores the task's row and sends its message, both with the open transaction.

        Raises OutsideTransaction without one if OUTSIDE is "refuse"; also if the open transaction is of a database that
        sends no messages, or if several are open, because the task could be lost or run after a rollback.
        """
        self.validate_task(task)
        alias = self._database(task)
        message_id = uuid7()
        call = {
            "id": str(message_id),
            "path": task.module_path,
            "backend": self.alias,
            "queue_name": task.queue_name,
            "priority": task.priority,
            "run_after": task.run_after,
            "args": normalize_json(args),
            "kwargs": normalize_json(kwargs),
            "status": TaskResultStatus.READY.value,
            "enqueued_at": timezone.now(),
        }
        with transaction.atomic(using=alias, savepoint=False):
            row = results.rows(alias).create(**call)
            send(
                self.own.topic(task.queue_name, task.priority),
                {"database": alias, "call": call},
                using=alias,
                message_id=message_id,
                deliver_at=_with_zone(task.run_after),
                max_reconsume_times=self.own.max_retries,
                properties={"task": task.module_path},
            )
        result = results.result_of(row)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> "TaskResult[Any]":
        """The result in one of the databases. Raises TaskResultDoesNotExist."""
        for alias in [self.own.database] if self.own.database else config().options.databases:
            if (row := results.rows(alias).filter(id=str(result_id)).first()) is not None:
                return results.result_of(row)
        raise TaskResultDoesNotExist(result_id)

    def check(self, **kwargs: Any) -> Iterable[CheckMessage]:
        """The findings of `manage.py check` about this backend: see `checks`."""
        return checks.findings(self.alias, self.own, self.queue_names)

    def _database(self, task: "Task[Any, Any]") -> str:
        """The alias of the database in which a transaction is open; if none is open, of the database in which to begin
        one.
        """
        options = config().options
        candidates = [self.own.database] if self.own.database else options.databases
        open_ones = [each.alias for each in connections.all(initialized_only=True) if each.in_atomic_block]
        chosen = [alias for alias in candidates if alias in open_ones]
        if len(chosen) == 1:
            return chosen[0]
        if not self.own.database and open_ones:
            raise OutsideTransaction(
                f"the task {task.module_path} is enqueued in transactions of {', '.join(open_ones)}, and belongs to "
                "one of MQBROKER's databases: name the database in MORE_DATABASES of MQBROKER, or, if several are "
                "open, in DATABASE of the task backend's OPTIONS"
            )
        if self.own.outside == "refuse":
            raise OutsideTransaction(
                f"the task {task.module_path} is enqueued in no transaction of {', '.join(candidates)}: enqueue it "
                'within transaction.atomic(), or set OUTSIDE of the task backend to "send"'
            )
        return candidates[0]


def _with_zone(moment: Any) -> Any:
    return timezone.make_aware(moment) if moment is not None and timezone.is_naive(moment) else moment
