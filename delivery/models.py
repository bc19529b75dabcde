"""The tables of delivery: consumer groups, what they have in flight, and their subscriptions."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from delivery.limits.models import Pace, Waiting  # noqa: F401  # Django looks for an app's models here
from store.db.columns import CText
from store.db.sealing import SealedField


def one_of(field: str, name: str, *values: str) -> models.CheckConstraint:
    """The database constraint with this name: the field has one of these values."""
    return models.CheckConstraint(condition=models.Q((f"{field}__in", values)), name=name)


class ConsumerGroup(models.Model):
    """Consumers that share the messages of a topic: each message goes to one of them."""

    id = models.AutoField(primary_key=True)
    name = CText(unique=True)
    start_at = models.TextField(default="earliest")
    ordered = models.BooleanField(default=False)
    queue_order = models.TextField(default="turns", db_default="turns")
    # The source of a message's key: `sharding_key` or a property; null if the group is not fair.
    fair_by = models.TextField(null=True)
    # The limits by value of a key (`delivery.limits.bounds`); null if the group has none.
    limits = models.JSONField(null=True)
    max_reconsume_times = models.IntegerField(null=True)
    retry_policy = models.JSONField(default=dict)
    paused = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "consumer_group"
        constraints = (one_of("start_at", "group_start_known", "earliest", "latest"),)

    def __str__(self) -> str:
        return str(self.name)


class RetryQueue(models.Model):
    """The queue of a group's retry topic that holds one topic's messages; numbered in the order of first use.

    A receive names its topic: from one common retry queue a consumer of `orders` would also receive the retries of
    `payments`. The row keeps the name of a deleted topic, because the same consumers read a new topic with this name.
    """

    pk = models.CompositePrimaryKey("group_id", "topic_id")
    group_id = models.IntegerField()
    topic_id = models.IntegerField()
    queue_id = models.IntegerField()
    topic_name = CText(null=True)  # null: deleted by a version of the broker that did not keep the name

    class Meta:
        db_table = "retry_queue"
        constraints = (models.UniqueConstraint(fields=("group_id", "queue_id"), name="retry_queue_of_one_topic"),)


class Receipt(models.Model):
    """A delivery: a message that is hidden from its group until it is acked or its invisible time is over.

    flight ──ack──▶ done (deleted)
        └──nack, or its time over──▶ a retry in %RETRY%<group> after its delay, or a dead letter (deleted likewise)

    First deliveries of a group that is not ordered begin in a `Bundle`.
    In an ordered group a message that fails stays in its queue: its receipt is held, and receipts of later messages
    with the same sharding key are parked behind it. `expires_at` of a held receipt is the time of the next delivery.
    A receipt handle names the row and its nonce; each delivery has a new nonce, so an earlier handle is refused.
    """

    pk = models.CompositePrimaryKey("group_id", "topic_id", "queue_id", "queue_offset")
    group_id = models.IntegerField()
    topic_id = models.IntegerField()
    queue_id = models.IntegerField()
    queue_offset = models.BigIntegerField()
    nonce = models.BigIntegerField()
    expires_at = models.DateTimeField()
    received_at = models.DateTimeField()
    log_segment = models.IntegerField()
    log_offset = models.BigIntegerField()
    tags_code = models.BigIntegerField()
    reconsume_times = models.SmallIntegerField()
    # The topic that the receive named. A message from the retry topic is retried in the retry queue of this topic.
    origin_topic_id = models.IntegerField()
    state = models.TextField()
    # The sharding key of the message in an ordered group, empty for a message without a key; null in any other group.
    sharding_key = models.TextField(null=True)
    # The value by which the group's limits count this delivery; null if no limit of deliveries in flight counts it.
    limit_value = CText(null=True)

    class Meta:
        db_table = "receipt"
        constraints = (one_of("state", "receipt_state_known", "flight", "held", "parked"),)
        # Index for `take_expired`: deliveries by the end of their invisible time; other receipts do not expire.
        indexes = (
            models.Index(fields=("expires_at",), condition=models.Q(state="flight"), name="receipt_expiry"),
            # Index for `read_ordered_receipts`: deliveries in flight of an ordered group, without receipts that wait.
            models.Index(
                fields=("group_id", "topic_id", "queue_id", "queue_offset"),
                condition=models.Q(state="flight", sharding_key__isnull=False),
                name="receipt_ordered_flight",
            ),
            # Index for `read_ordered_receipts`, which walks through held and parked receipts from one key to the next.
            models.Index(
                fields=("group_id", "topic_id", "queue_id", "sharding_key", "queue_offset"),
                condition=models.Q(state__in=("held", "parked")),
                name="receipt_waiting",
            ),
            # Index for `hand_out_by_turns`: deliveries in flight that count towards a limit.
            models.Index(
                fields=("group_id", "origin_topic_id", "limit_value"),
                condition=models.Q(state="flight", limit_value__isnull=False),
                name="receipt_limited",
            ),
        )


class Bundle(models.Model):
    """Deliveries of one receive in 64 neighbouring places of a queue, from `first_offset`, a multiple of 64, on.

    flight ──acks──▶ fewer bits in `unsettled` ──the last ack──▶ done (deleted)
        └──a nack, a return, an extension, or its time over──▶ receipts, for these deliveries or for all

    `places` has a bit for each message that was handed out, bit 0 for `first_offset`; `unsettled` a bit for each
    delivery that is in the bundle now. `log_offsets` and `tags_codes` have an element per bit of `places`, from the
    lowest bit on; null: all tags codes are 0. Only first deliveries of a group that is not ordered are in bundles.
    """

    pk = models.CompositePrimaryKey("group_id", "topic_id", "queue_id", "first_offset", "nonce")
    group_id = models.IntegerField()
    topic_id = models.IntegerField()
    queue_id = models.IntegerField()
    first_offset = models.BigIntegerField()
    nonce = models.BigIntegerField()
    places = models.BigIntegerField()
    unsettled = models.BigIntegerField()
    expires_at = models.DateTimeField()
    received_at = models.DateTimeField()
    # The segment of all messages of the bundle; a message of another segment has a receipt.
    log_segment = models.IntegerField()
    # The topic that the receive named.
    origin_topic_id = models.IntegerField()
    log_offsets = ArrayField(models.BigIntegerField())
    tags_codes = ArrayField(models.BigIntegerField(), null=True)

    class Meta:
        db_table = "bundle"
        # An index for `lock_expired_bundles`. An ack changes no indexed column, so PostgreSQL writes the new row into
        # the same page.
        indexes = (models.Index(fields=("expires_at",), name="bundle_expiry"),)


class Redrive(models.Model):
    """A dead letter that was sent again. Append-only; partitioned by segment: the row is dropped after the letter."""

    pk = models.CompositePrimaryKey("group_id", "queue_offset", "segment_id")
    segment_id = models.IntegerField()
    group_id = models.IntegerField()
    queue_offset = models.BigIntegerField()
    redriven_at = models.DateTimeField()

    class Meta:
        db_table = "redrive"


class Nack(models.Model):
    """The reason of a nack: the consumer's text, or the answer to a push. Append-only; partitioned by segment.

    A nack without a reason has no row. `log_offset` is the message's log offset at the time of the nack, `nonce` the
    nonce of the delivery.
    """

    pk = models.CompositePrimaryKey("log_offset", "group_id", "nonce", "segment_id")
    segment_id = models.IntegerField()
    log_offset = models.BigIntegerField()
    group_id = models.IntegerField()
    nonce = models.BigIntegerField()
    reconsume_times = models.SmallIntegerField()
    nacked_at = models.DateTimeField()
    reason = models.TextField()

    class Meta:
        db_table = "nack"


class Subscription(models.Model):
    """A consumer group's messages of a topic, pushed to a server, and the health of its calls.

    healthy ──failures in a row──▶ open ──its time is over──▶ half_open ──an answer──▶ healthy
    disabled: by the server's answer 410, or after five days without a success; an operator's change ends it.

    Group and topic are stored by name: while one of them does not exist, nothing is pushed.
    """

    id = models.AutoField(primary_key=True)
    name = CText(unique=True)
    group_name = CText()
    topic_name = CText()
    filter = models.JSONField(null=True)
    url = models.TextField()
    max_batch = models.IntegerField(default=1)
    timeout_seconds = models.FloatField(default=10)
    concurrency = models.IntegerField(default=16)
    secret = SealedField()
    previous_secret = SealedField(null=True)
    rotated_at = models.DateTimeField(null=True)
    paused = models.BooleanField(default=False)
    state = models.TextField(default="healthy")
    failures = models.IntegerField(default=0)
    open_until = models.DateTimeField(null=True)
    failing_since = models.DateTimeField(null=True)  # the first failure since the last success
    last_failure = models.TextField(null=True)
    last_failure_at = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    # The health of the subscription's server, by the calls from this cell.
    of_each_cell = (
        *("state", "failures", "open_until", "failing_since"),
        *("last_failure", "last_failure_at", "last_success_at"),
    )

    class Meta:
        db_table = "subscription"
        constraints = (one_of("state", "subscription_state_known", "healthy", "open", "half_open", "disabled"),)

    def __str__(self) -> str:
        return str(self.name)


# Views that a migration creates: dead letters that were not redriven, with their reasons; and the same dead letters
# with their messages.
VIEWS = ("dead_letter", "dead_letter_message")
