"""The barrier's table, for migrations and the admin. The barrier reads and writes it by its own statements."""

from typing import ClassVar

from django.db import models


class BarrierRow(models.Model):
    """The outcome of one local transaction. Rows older than 14 days are deleted.

    COMMIT: written by the local transaction, so the row exists if and only if the local transaction has committed.
    ROLLBACK: written by a check that came first, so the local transaction cannot commit any more.
    """

    transaction_id = models.CharField(primary_key=True, max_length=36)
    producer_group = models.CharField(max_length=255)
    decision = models.CharField(max_length=8)
    decided_at = models.DateTimeField()
    #: The messages as JSON, while they wait for the broker.
    messages = models.TextField(null=True)
    #: Why the broker refuses these messages; an operator may send them again.
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
