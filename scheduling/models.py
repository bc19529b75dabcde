"""The tables of scheduling: timers, recalls, and the lateness of releases."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Timer(models.Model):
    """A message that becomes visible at its own time, not at a delay level.

    waiting ──its time──▶ an entry in its topic's queue      the row is deleted: that delete is the release
       └─────recall─────▶ never visible                      the row is deleted: that delete is the recall

    The broker makes the id. The message id is not unique here: two consumer groups may wait for a retry of a message.
    """

    id = models.UUIDField(primary_key=True)
    due_at = models.DateTimeField()
    # Null for a retry, because only a message that its producer delayed can be recalled.
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
            # The index for the release, which takes due timers in this order.
            models.Index(fields=("due_at", "id"), name="timer_due"),
            # The index for the trace, which finds the timers of a message.
            models.Index(fields=("log_offset",), name="timer_message"),
            # The index for `count_retrying`: only the retries of a consumer group, among any number of delayed
            # messages.
            models.Index(fields=("topic_id",), condition=models.Q(reconsume_times__gt=0), name="timer_retries"),
        )


class Recall(models.Model):
    """A recalled entry of a delay level's queue; the release passes over the entry and deletes the row."""

    pk = models.CompositePrimaryKey("queue_id", "queue_offset")
    queue_id = models.IntegerField()
    queue_offset = models.BigIntegerField()

    class Meta:
        db_table = "recall"


class Lateness(models.Model):
    """The releases of one process in some 10 s, counted in buckets of lateness. Append-only; partitioned by segment."""

    pk = models.CompositePrimaryKey("noted_at", "id", "segment_id")
    segment_id = models.IntegerField()
    id = models.UUIDField()
    noted_at = models.DateTimeField()
    queue_id = models.IntegerField()
    counts = ArrayField(models.IntegerField())

    class Meta:
        db_table = "lateness"
