"""The tables of schedules: the schedules, and the firings, whose messages are not stored yet."""

import uuid

from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Schedule(models.Model):
    """A message that is sent at the times of a cron expression.

    waiting ──next_at──▶ a firing     its statement also moves `next_at` to the next time: each time is decided once
    next_at null: no time is left
    """

    name = models.TextField(unique=True)
    # Seed of the messages' ids: a new schedule of the same name has another seed, and so other ids.
    seed = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID())
    # The message without its body, which is in `body`: only callers who may read the topic may see the body.
    message = models.JSONField()
    body = models.JSONField()
    cron = models.TextField()
    time_zone = models.TextField(default="UTC", db_default="UTC")
    begins_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    missed = models.TextField(default="last", db_default="last")
    paused = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(db_default=Now())
    # The number of changes to its times: a decision that was computed before a change is not applied after the change.
    version = models.IntegerField(default=0, db_default=0)
    next_at = models.DateTimeField(null=True)
    # The latest time for which a firing was decided.
    last_at = models.DateTimeField(null=True)
    fired = models.BigIntegerField(default=0, db_default=0)
    failure = models.TextField(null=True)
    # The first failure since the last success or change.
    failed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "schedule"
        indexes = (models.Index(fields=("next_at",), condition=Q(paused=False), name="schedule_next_at"),)

    def __str__(self) -> str:
        return str(self.name)


class Firing(models.Model):
    """A decided message of a schedule that may not be stored yet; its id is the message's id.

    The row keeps the message of the time of the decision, and is sent even if the schedule is changed or deleted.
    """

    id = models.UUIDField(primary_key=True)
    schedule_id = models.BigIntegerField()
    name = models.TextField()
    message = models.JSONField()
    fire_at = models.DateTimeField()
    decided_at = models.DateTimeField(db_default=Now())
    # The time at which a process took the firing to send its message.
    taken_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "schedule_firing"
        # An index for counting the waiting firings of a schedule.
        indexes = (models.Index(fields=("schedule_id",), name="schedule_firing_of"),)
