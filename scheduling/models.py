"""The tables of scheduling: what waits for its time."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Timer(models.Model):
    """A message that becomes visible at any given time. Small and hot: its release or its recall deletes the row,
    and that delete decides which of the two happened.
    """

    id = models.UUIDField(primary_key=True)
    due_at = models.DateTimeField()
    # Null for a retry: only what its producer sent can be recalled.
    message_id = models.UUIDField(null=True)
    log_segment = models.IntegerField()
    log_offset = models.BigIntegerField()
    topic_id = models.IntegerField()
    queue_id = models.IntegerField()
    tags_code = models.BigIntegerField()
    reconsume_times = models.SmallIntegerField()

    class Meta:
        db_table = "timer"
        indexes = (
            # The release takes what is due, the longest due first.
            models.Index(fields=("due_at", "id"), name="timer_due"),
            # From a message to what it waits for: its trace.
            models.Index(fields=("log_offset",), name="timer_message"),
        )


class Recall(models.Model):
    """A note that an entry of a level's queue was recalled; the release passes over the entry and deletes the note."""

    pk = models.CompositePrimaryKey("queue_id", "queue_offset")
    queue_id = models.IntegerField()
    queue_offset = models.BigIntegerField()

    class Meta:
        db_table = "recall"


class Lateness(models.Model):
    """How late one process released in some seconds, counted in buckets. Append-only; partitioned by segment."""

    pk = models.CompositePrimaryKey("noted_at", "id", "segment_id")
    segment_id = models.IntegerField()
    id = models.UUIDField()
    noted_at = models.DateTimeField()
    queue_id = models.IntegerField()
    counts = ArrayField(models.IntegerField())

    class Meta:
        db_table = "lateness"
