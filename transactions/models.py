"""The tables of transactions: producer groups, what is undecided, how it was decided and what the checks brought."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from store.db.columns import CText
from store.db.sealing import SealedField


class ProducerGroup(models.Model):
    """Producers that can answer for each other's transactions.

    `api_keys`: names of the API keys that may act for the group, or patterns of names with `*`; null: each that may
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
    """The URL at which a producer group is asked about its half messages, with the health of the server there.

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
    # Of calls that were answered 2xx. A void answer named none of the transactions that it was asked about.
    last_answer = models.TextField(null=True)
    last_answer_at = models.DateTimeField(null=True)
    void_answers = models.IntegerField(default=0, db_default=0)
    void_since = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    # Its health, by the calls from there.
    of_each_cell = (
        *("state", "failures", "open_until", "last_failure", "last_failure_at", "last_success_at"),
        *("last_answer", "last_answer_at", "void_answers", "void_since"),
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

    The columns from `topic_id` on are those of its message. Of several messages these are null, and the arrays run in
    parallel, one element per message. A `tags_code` of null is 0; `delays` is null when no message is delayed.

    Until its first check is claimed, a half message with the usual immunity waits in a **line**, named by its immunity
    in seconds: the order of storing is the order of checks, and one index serves both. Any change of the row moves it
    to line 0. A discarded half message stays in this table: a race could find it in neither of two tables, or in both.
    """

    transaction_id = models.UUIDField(primary_key=True)
    producer_group_id = models.IntegerField()
    endpoint_id = models.IntegerField(null=True)
    stored_at = models.DateTimeField()
    immunity_seconds = models.FloatField()
    next_check_at = models.DateTimeField()
    check_times = models.IntegerField(default=0)
    # The last allowed check was asked: at the next due time the half is discarded.
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
    # Of the key that began it; null for a key without `max_undecided`: its transactions stay out of the index.
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
            # Checks claim a group's due halves, the longest due first; those in a line by the index of the lines.
            models.Index(
                fields=("producer_group_id", "next_check_at"),
                condition=models.Q(discarded_at__isnull=True, line=0),
                name="half_message_due",
            ),
            # Discards read the halves whose checks are used up; almost always empty.
            models.Index(
                fields=("next_check_at",),
                condition=models.Q(exhausted=True, discarded_at__isnull=True),
                name="half_message_exhausted",
            ),
            # The operator reads the discarded, the latest first.
            models.Index(
                fields=("discarded_at", "transaction_id"),
                condition=models.Q(discarded_at__isnull=False),
                name="half_message_discarded",
            ),
            # The checks, the console and the limit per group read one group's halves, of each line the oldest first.
            models.Index(fields=("producer_group_id", "line", "stored_at"), name="half_message_line"),
            # The limit per API key counts one key's pending halves.
            models.Index(
                fields=("api_key_id",),
                condition=models.Q(api_key_id__isnull=False, discarded_at__isnull=True),
                name="half_message_key",
            ),
        )


class Operation(models.Model):
    """An end, UNKNOWN, discard or resume of a transaction. RocketMQ's op queue. Append-only; partitioned by segment.

    COMMIT and ROLLBACK decide, once per transaction; UNKNOWN, DISCARD and RESUME are history. The columns from
    `topic_id` on, or the arrays of several messages, are those of the half message, with the queue offset of a commit
    (null while delayed): a repeated end is answered from them.
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
            # The history of a transaction, besides its decision: most transactions have none.
            models.Index(
                fields=("transaction_id",),
                condition=~models.Q(decision__in=("COMMIT", "ROLLBACK")),
                name="operation_undecided",
            ),
        )


class CheckAttempt(models.Model):
    """One check of a transaction, and its answer. Append-only; partitioned by segment."""

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
    """Transactions of a producer group with messages of a topic, by their end, as far as they are counted."""

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
    """Operations below `next_id` are in the totals, those below `until_id` come next, when `settles_at` is reached."""

    first_operation = models.BigIntegerField(primary_key=True)
    next_id = models.BigIntegerField()
    until_id = models.BigIntegerField()
    settles_at = models.BigIntegerField()

    class Meta:
        db_table = "counted_operations"
