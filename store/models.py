"""The tables of the store: messages, the entries that make them visible, and progress."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from store.cells.models import Cell as Cell
from store.cells.models import CellIdentity as CellIdentity
from store.cells.models import CellMap as CellMap
from store.db.columns import CText
from store.process.models import Heartbeat as Heartbeat
from store.process.models import Presence as Presence


class Topic(models.Model):
    """A named stream of messages with a number of queues, which never falls, in one cell.

    Topics of one home lie in one cell; a topic with an empty home has no other topic in its home.
    """

    id = models.AutoField(primary_key=True)
    name = CText(unique=True)
    queues = models.IntegerField()
    reserved_hours = models.IntegerField(null=True)
    permission = models.TextField(default="rw")
    # The topic takes no messages before this time. RocketMQ's startAcceptSendRequestTimestamp is for a whole broker.
    sends_from = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    cell_id = models.IntegerField(default=0, db_default=0)
    home = models.TextField(default="", db_default="")

    class Meta:
        db_table = "topic"
        constraints = (
            models.CheckConstraint(condition=models.Q(queues__gte=1), name="topic_has_a_queue"),
            models.CheckConstraint(condition=models.Q(permission__in=("rw", "r", "w")), name="topic_permission_known"),
        )

    def __str__(self) -> str:
        return str(self.name)


class Namespace(models.Model):
    """The prefix of the names of a team's topics and groups. The rows are at the control.

    Limits: messages and bytes per second of all its API keys in each web process; topics; undecided transactions in
    each cell. Null means no limit.
    """

    name = CText(unique=True)
    messages_per_second = models.IntegerField(null=True)
    bytes_per_second = models.BigIntegerField(null=True)
    max_topics = models.IntegerField(null=True)
    max_undecided = models.IntegerField(null=True)
    # The number of requests that these limits have refused, and when the last of them was counted.
    refused = models.BigIntegerField(default=0, db_default=0)
    refused_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "namespace"

    def __str__(self) -> str:
        return str(self.name)


class QueueFloor(models.Model):
    """The lowest offset that a queue still holds; written before retention drops the segment below it."""

    pk = models.CompositePrimaryKey("topic_id", "queue_id")
    topic_id = models.IntegerField()
    queue_id = models.IntegerField()
    min_offset = models.BigIntegerField()

    class Meta:
        db_table = "queue_floor"


class Segment(models.Model):
    """A part of the append-only tables: the unit of retention and of export.

    ready ──roll──▶ open ──roll──▶ closed ──retention──▶ dropped

    Exactly one segment is open, and writers hold a shared lock on the log while they append to it. `unexported_at`:
    when retention began to drop the segment for lack of disk space, before an export held it.
    """

    id = models.IntegerField(primary_key=True)
    state = models.TextField(default="ready")
    opened_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    dropped_at = models.DateTimeField(null=True)
    unexported_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "segment"
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=("ready", "open", "closed", "dropped")), name="segment_state_known"
            ),
            # At most one segment is open: every write reads the open segment.
            models.UniqueConstraint(fields=("state",), condition=models.Q(state="open"), name="segment_one_is_open"),
        )

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"


class Export(models.Model):
    """The latest export to a folder, noted when it was complete. `segment_id`: the last segment that it holds whole.

    With RETAIN_UNTIL_EXPORTED retention waits for exports. `rows`: the number of rows of each table. `checksum`: the
    SHA-256 of the manifest, by which a verification detects that the manifest was changed.
    """

    target = models.TextField(primary_key=True)
    taken_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    segment_id = models.IntegerField()
    log_offset = models.BigIntegerField()
    rows = models.JSONField()
    checksum = models.TextField(null=True)

    class Meta:
        db_table = "export"


class CommitLog(models.Model):
    """Every stored message, once. Append-only; partitioned by segment.

    `body_form`: "text" or "base64", the form of the body in the request and in answers, or "zlib" or "zstd" for a
    base64 body that its producer has compressed. `properties`: JSON as bytes, not as PostgreSQL's json, so that no byte
    changes.
    """

    pk = models.CompositePrimaryKey("log_offset", "segment_id")
    segment_id = models.IntegerField()
    log_offset = models.BigIntegerField()
    stored_at = models.DateTimeField()
    born_at = models.DateTimeField(null=True)
    topic_id = models.IntegerField()
    queue_id = models.IntegerField()
    message_id = models.UUIDField()
    transaction_id = models.UUIDField(null=True)
    producer_group_id = models.IntegerField(null=True)
    tags = models.TextField(null=True)
    keys = ArrayField(models.TextField(), null=True)
    sharding_key = models.TextField(null=True)
    traceparent = models.TextField(null=True)
    properties = models.BinaryField(null=True)
    body = models.BinaryField()
    body_form = models.TextField()

    class Meta:
        db_table = "commit_log"
        constraints = (models.UniqueConstraint(fields=("message_id", "segment_id"), name="commit_log_message_once"),)
        indexes = (
            # An index for look-ups by key. fastupdate is off: with it, the send that empties the pending list waits for
            # a second or more. Without it, each key costs 4 µs of PostgreSQL's CPU, and a send without keys costs
            # nothing.
            GinIndex(
                fields=("keys",), condition=models.Q(keys__isnull=False), fastupdate=False, name="commit_log_keys"
            ),
        )


class ConsumeQueue(models.Model):
    """An entry: it makes a stored message visible at an offset of a queue. Append-only; partitioned by segment.

    In a schedule queue `tags_code` is the time of delivery in ms, and the real_ columns are the topic and queue of the
    delivery. `due_at`: the time of the timer whose release added the entry; the timer's row is deleted.
    """

    pk = models.CompositePrimaryKey("topic_id", "queue_id", "queue_offset", "segment_id")
    segment_id = models.IntegerField()
    topic_id = models.IntegerField()
    queue_id = models.IntegerField()
    queue_offset = models.BigIntegerField()
    log_segment = models.IntegerField()
    log_offset = models.BigIntegerField()
    tags_code = models.BigIntegerField()
    reconsume_times = models.SmallIntegerField()
    entered_at = models.DateTimeField()
    real_topic_id = models.IntegerField(null=True)
    real_queue_id = models.IntegerField(null=True)
    real_tags_code = models.BigIntegerField(null=True)
    # The last column of the table. For an entry without a delay it is null, like the real_ columns, so the row does not
    # grow.
    due_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "consume_queue"
        # An index for finding the entries of a message: the answer to a repeated send, and the trace of a message.
        indexes = (models.Index(fields=("log_offset",), name="consume_queue_message"),)


class Progress(models.Model):
    """A reader's next offset in a queue; the row with the highest move counts. Append-only; partitioned by segment.

    A ledger instead of an updated counter: with a pinned snapshot each batch would leave a dead version of a counter.
    Reader 0 is the scheduler, any other is a consumer group. Moves have no gaps, so only one of two concurrent
    transactions can insert the next move.
    """

    pk = models.CompositePrimaryKey("reader_id", "topic_id", "queue_id", "move", "segment_id")
    segment_id = models.IntegerField()
    reader_id = models.IntegerField()
    topic_id = models.IntegerField()
    queue_id = models.IntegerField()
    move = models.BigIntegerField()
    next_offset = models.BigIntegerField()
    moved_at = models.DateTimeField()

    class Meta:
        db_table = "progress"
