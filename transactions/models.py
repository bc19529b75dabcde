"""The tables of transactions: producer groups and endpoints, half messages, operations, check attempts, totals."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from store.db.columns import CText
from store.db.sealing import SealedField


class ProducerGroup(models.Model):
    """Producers that can end each other's transactions and answer checks about them.

    `api_keys`: names of the API keys that may act for the group, or patterns of names with `*`. Null: all keys that may
    produce to the topics of a transaction.
    """

    id = models.AutoField(primary_key=True)
    name = CText(unique=True)
    reject_transaction_message = models.BooleanField(default=False)
    max_undecided = models.IntegerField(null=True)
    checks_paused = models.BooleanField(default=False)
    api_keys = ArrayField(models.TextField(), null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "producer_group"

    def __str__(self) -> str:
        return str(self.name)


class Endpoint(models.Model):
    """The URL at which a producer group is asked about its half messages, with the health of the server at this URL.

    healthy ──failures in a row──▶ open ──its time is over──▶ half_open ──an answer──▶ healthy
    disabled: by the operator, or by the endpoint itself with 410.
    """

    id = models.AutoField(primary_key=True)
    group = models.ForeignKey(ProducerGroup, on_delete=models.CASCADE, related_name="endpoints")
    url = models.TextField()
    max_batch = models.IntegerField(default=1)
    timeout_seconds = models.FloatField(default=5)
    concurrency = models.IntegerField(default=16)
    secret = SealedField()
    previous_secret = SealedField(null=True)
    rotated_at = models.DateTimeField(null=True)
    state = models.TextField(default="healthy")
    failures = models.IntegerField(default=0)
    open_until = models.DateTimeField(null=True)
    last_failure = models.TextField(null=True)
    last_failure_at = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    # These fields are about calls that were answered 2xx. A void answer names none of the transactions in the call.
    last_answer = models.TextField(null=True)
    last_answer_at = models.DateTimeField(null=True)
    void_answers = models.IntegerField(default=0, db_default=0)
    void_since = models.DateTimeField(null=True)
    failing_since = models.DateTimeField(null=True)  # the first failure since the last success
    created_at = models.DateTimeField(db_default=Now())

    of_each_cell = (  # the health of the endpoint, by calls from the cell of this row
        *("state", "failures", "open_until", "last_failure", "last_failure_at", "last_success_at"),
        *("last_answer", "last_answer_at", "void_answers", "void_since", "failing_since"),
    )

    class Meta:
        db_table = "endpoint"
        constraints = (
            models.UniqueConstraint(fields=("group", "url"), name="endpoint_once_per_group"),
            models.CheckConstraint(
                condition=models.Q(state__in=("healthy", "open", "half_open", "disabled")), name="endpoint_state_known"
            ),
        )

    def __str__(self) -> str:
        return self.url


class HalfMessage(models.Model):
    """A transaction whose stored messages wait for their producer's decision.

    prepared ──commit──▶ an entry per message in its topic's queue: its row here is deleted, that delete is the decision
       ├──rollback──▶ no consumer ever sees it; the row is deleted likewise
       └──too many checks──▶ discarded (discarded_at), until an operator resumes or decides it

    The columns from `topic_id` on belong to its only message. With several messages these columns are null, and the
    arrays have an element for each message. A `tags_code` of null means 0; `delays` is null if no message is delayed.

    Until its first check is claimed, a half message with a usual immunity waits in a **line**, named by the immunity in
    seconds: in a line the order of storing is the order of checks, so one index serves both. Any change of the row
    moves it to line 0. A discarded half message stays in this table: a reader of two tables could miss it.
    """

    transaction_id = models.UUIDField(primary_key=True)
    producer_group_id = models.IntegerField()
    endpoint_id = models.IntegerField(null=True)
    stored_at = models.DateTimeField()
    immunity_seconds = models.FloatField()
    next_check_at = models.DateTimeField()
    check_times = models.IntegerField(default=0)
    # Whether the last allowed check was sent. If so, the half message is discarded at its next due time.
    exhausted = models.BooleanField(default=False)
    last_failure = models.TextField(null=True)
    discarded_at = models.DateTimeField(null=True)
    log_segment = models.IntegerField()
    log_offsets = ArrayField(models.BigIntegerField(), null=True)
    message_ids = ArrayField(models.UUIDField(), null=True)
    topic_ids = ArrayField(models.IntegerField(), null=True)
    queue_ids = ArrayField(models.IntegerField(), null=True)
    tags_codes = ArrayField(models.BigIntegerField(), null=True)
    delays = models.JSONField(null=True)
    # The key that began the transaction; null for a key without `max_undecided`, to keep the index small.
    api_key_id = models.BigIntegerField(null=True)
    topic_id = models.IntegerField(null=True)
    log_offset = models.BigIntegerField(null=True)
    message_id = models.UUIDField(null=True)
    queue_id = models.IntegerField(null=True)
    tags_code = models.BigIntegerField(null=True)
    line = models.SmallIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "half_message"
        indexes = (
            # An index for checks: a group's due half messages, the longest due first. Lines have a separate index.
            models.Index(
                fields=("producer_group_id", "next_check_at"),
                condition=models.Q(discarded_at__isnull=True, line=0),
                name="half_message_due",
            ),
            # An index for discards: half messages whose checks are used up. It is almost always empty.
            models.Index(
                fields=("next_check_at",),
                condition=models.Q(exhausted=True, discarded_at__isnull=True),
                name="half_message_exhausted",
            ),
            # An index for operators: the discarded half messages, the latest first.
            models.Index(
                fields=("discarded_at", "transaction_id"),
                condition=models.Q(discarded_at__isnull=False),
                name="half_message_discarded",
            ),
            # For checks, the console and a group's limit: a group's half messages by line, the oldest of a line first.
            models.Index(fields=("producer_group_id", "line", "stored_at"), name="half_message_line"),
            # An index for the limit of an API key: the key's pending half messages.
            models.Index(
                fields=("api_key_id",),
                condition=models.Q(api_key_id__isnull=False, discarded_at__isnull=True),
                name="half_message_key",
            ),
        )


class Operation(models.Model):
    """An end, UNKNOWN, discard or resume of a transaction. RocketMQ's op queue. Append-only; partitioned by segment.

    COMMIT and ROLLBACK decide, once per transaction; UNKNOWN, DISCARD and RESUME are history. The columns from
    `topic_id` on, or the arrays for several messages, are copied from the half message, with the queue offset of a
    commit (null for a delayed message). A repeated end is answered from these columns.
    """

    pk = models.CompositePrimaryKey("operation_id", "segment_id")
    segment_id = models.IntegerField()
    operation_id = models.BigIntegerField()
    transaction_id = models.UUIDField()
    producer_group_id = models.IntegerField()
    decision = models.TextField()
    decided_by = models.TextField()
    decided_at = models.DateTimeField()
    check_times = models.IntegerField()
    stored_at = models.DateTimeField()
    log_segment = models.IntegerField()
    log_offsets = ArrayField(models.BigIntegerField(), null=True)
    message_ids = ArrayField(models.UUIDField(), null=True)
    topic_ids = ArrayField(models.IntegerField(), null=True)
    queue_ids = ArrayField(models.IntegerField(), null=True)
    queue_offsets = ArrayField(models.BigIntegerField(null=True), null=True)
    remark = models.TextField(null=True)
    topic_id = models.IntegerField(null=True)
    log_offset = models.BigIntegerField(null=True)
    queue_offset = models.BigIntegerField(null=True)
    message_id = models.UUIDField(null=True)
    queue_id = models.IntegerField(null=True)

    class Meta:
        db_table = "operation"
        constraints = (
            models.UniqueConstraint(
                fields=("transaction_id", "segment_id"),
                condition=models.Q(decision__in=("COMMIT", "ROLLBACK")),
                name="operation_decides_once",
            ),
        )
        indexes = (
            # An index for the history of a transaction: its operations that decide nothing. Most have none.
            models.Index(
                fields=("transaction_id",),
                condition=~models.Q(decision__in=("COMMIT", "ROLLBACK")),
                name="operation_undecided",
            ),
        )


class CheckAttempt(models.Model):
    """A check of a transaction, and its answer. Append-only; partitioned by segment."""

    pk = models.CompositePrimaryKey("attempt_id", "segment_id")
    segment_id = models.IntegerField()
    attempt_id = models.UUIDField()
    transaction_id = models.UUIDField()
    endpoint_id = models.IntegerField(null=True)
    endpoint_url = models.TextField(null=True)
    asked_at = models.DateTimeField()
    counted = models.BooleanField()
    status = models.IntegerField(null=True)
    latency_ms = models.IntegerField(null=True)
    answer = models.TextField(null=True)
    reason = models.TextField(null=True)

    class Meta:
        db_table = "check_attempt"
        indexes = (models.Index(fields=("transaction_id",), name="check_attempt_transaction"),)


class TransactionTotal(models.Model):
    """The number of transactions of a producer group with messages of a topic, by their end, as counted so far."""

    pk = models.CompositePrimaryKey("first_operation", "topic_id", "producer_group_id")
    first_operation = models.BigIntegerField()
    topic_id = models.IntegerField()
    producer_group_id = models.IntegerField()
    committed = models.BigIntegerField()
    rolled_back = models.BigIntegerField()
    discarded = models.BigIntegerField()

    class Meta:
        db_table = "transaction_total"


class CountedOperations(models.Model):
    """Operations below `next_id` are in the totals; operations below `until_id` are added at `settles_at`."""

    first_operation = models.BigIntegerField(primary_key=True)
    next_id = models.BigIntegerField()
    until_id = models.BigIntegerField()
    settles_at = models.BigIntegerField()

    class Meta:
        db_table = "counted_operations"
