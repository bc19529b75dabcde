"""The tables of messages that wait by key, and of the rates of values."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from store.db.columns import CText


class Waiting(models.Model):
    """A run of entries that a group with `fair_by` or limits has read ahead: of one key and queue, in their order.

    `offsets` are the queue offsets of the entries; the first `taken` entries are handed out. The row is deleted when
    its last entry is handed out. Runs of one key are handed out in the order of their first entries' log positions.
    """

    pk = models.CompositePrimaryKey(
        *("group_id", "topic_id", "fair_key", "log_segment", "log_offset"),
        *("queue_topic_id", "queue_id", "first_offset"),
    )
    group_id = models.IntegerField()
    # The topic that the receive named. The queue belongs to this topic, or holds the group's retries of this topic.
    topic_id = models.IntegerField()
    fair_key = CText()
    log_segment = models.IntegerField()
    log_offset = models.BigIntegerField()
    queue_topic_id = models.IntegerField()
    queue_id = models.IntegerField()
    first_offset = models.BigIntegerField()
    offsets = ArrayField(models.BigIntegerField())
    taken = models.IntegerField()

    class Meta:
        db_table = "waiting"


class Pace(models.Model):
    """The token bucket of a value, for a group and a topic: the bucket is full again at `due_at`.

    A value without a row has a full bucket. Rows of full buckets are deleted.
    """

    pk = models.CompositePrimaryKey("group_id", "topic_id", "value")
    group_id = models.IntegerField()
    topic_id = models.IntegerField()
    value = CText()
    due_at = models.DateTimeField()

    class Meta:
        db_table = "pace"
