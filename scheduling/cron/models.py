"""The tables of schedules: what is sent when, and the firings that are decided and not sent yet."""

import uuid

from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Schedule(models.Model):
    """A message that is sent at the times of a cron expression.

    waiting ──next_at──▶ a firing     the statement that inserts it moves `next_at` on, so that each is decided once
    next_at null: no time is left
    """

    name = models.TextField(unique=True)
    # Of the ids of its messages: one that is made anew under the same name has others.
    seed = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID())
    # Without its body, which only those may see who may read the topic.
    message = models.JSONField()
    body = models.JSONField()
    cron = models.TextField()
    time_zone = models.TextField(default="UTC", db_default="UTC")
    begins_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    missed = models.TextField(default="last", db_default="last")
    paused = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(db_default=Now())
    # Counts changes of its times: what was computed before a change decides nothing after it.
    version = models.IntegerField(default=0, db_default=0)
    next_at = models.DateTimeField(null=True)
    # The latest time that a firing was decided for.
    last_at = models.DateTimeField(null=True)
    fired = models.BigIntegerField(default=0, db_default=0)
    failure = models.TextField(null=True)
    failed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "schedule"
        indexes = (models.Index(fields=("next_at",), condition=Q(paused=False), name="schedule_next_at"),)

    def __str__(self) -> str:
        return str(self.name)


class Firing(models.Model):
    """A message of a schedule that is decided and not known to be stored yet; its id is the message's.

    It holds the message as it was when it was decided, and is sent whatever becomes of its schedule.
    """

    id = models.UUIDField(primary_key=True)
    schedule_id = models.BigIntegerField()
    name = models.TextField()
    message = models.JSONField()
    fire_at = models.DateTimeField()
    decided_at = models.DateTimeField(db_default=Now())
    # When a process took it to send it.
    taken_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "schedule_firing"
        # Those of one schedule that wait are counted.
        indexes = (models.Index(fields=("schedule_id",), name="schedule_firing_of"),)
