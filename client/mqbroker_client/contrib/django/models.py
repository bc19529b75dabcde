"""The barrier's table, which the barrier reads and writes by its own statements, and the results of tasks."""

from typing import ClassVar

from django.db import models


class BarrierRow(models.Model):
    """The outcome of one local transaction. Rows older than 14 days are deleted.

    COMMIT: written by the local transaction, so the row exists if and only if the local transaction has committed.
    ROLLBACK: written by a check before the local transaction wrote COMMIT, which therefore cannot commit any more.
    """

    transaction_id = models.CharField(primary_key=True, max_length=36)
    producer_group = models.CharField(max_length=255)
    decision = models.CharField(max_length=8)
    decided_at = models.DateTimeField()
    #: The messages as JSON, while they wait for the broker.
    messages = models.TextField(null=True)
    #: The reason why the broker refuses these messages. An operator may send them again.
    refused = models.TextField(null=True)

    class Meta:
        db_table = "mqbroker_barrier"
        # Two constraints are not in the model's state, because one of them differs between databases: see the
        # migration.
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(decision__in=["COMMIT", "ROLLBACK"]), name="mqbroker_barrier_decision"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["decided_at"], name="mqbroker_barrier_decided")]

    def __str__(self) -> str:
        return f"{self.transaction_id} {self.decision}"


class TaskRow(models.Model):
    """A task of Django's task framework: a call and its result.

    READY ──an attempt begins──▶ RUNNING ──▶ SUCCESSFUL: written in the task's own transaction
      ▲                             ├──▶ FAILED: the last attempt failed, and the message is a dead letter
      └──the attempt failed─────────┘
    """

    #: The id of the result, and of the first message of the task.
    id = models.CharField(primary_key=True, max_length=36)
    #: The dotted name of the task.
    path = models.TextField()
    backend = models.CharField(max_length=255)
    queue_name = models.CharField(max_length=255)
    priority = models.SmallIntegerField()
    run_after = models.DateTimeField(null=True)
    args = models.JSONField()
    kwargs = models.JSONField()
    status = models.CharField(max_length=16)
    enqueued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    last_attempted_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    #: The id of the worker of each attempt.
    worker_ids = models.JSONField(default=list)
    #: The errors of the last attempts: the dotted name of the exception's class, and the traceback.
    errors = models.JSONField(default=list)
    return_value = models.JSONField(null=True)

    class Meta:
        db_table = "mqbroker_task"
        indexes: ClassVar = [models.Index(fields=["finished_at"], name="mqbroker_task_finished")]

    def __str__(self) -> str:
        return f"{self.path} {self.status}"
