"""The tables of delivery: who reads, and what is in flight."""

from django.db import models
from django.db.models.functions import Now

from store.db.columns import CText


class ConsumerGroup(models.Model):
    """Consumers that share the messages of a topic: each message goes to one of them."""

    id = models.AutoField(primary_key=True)
    name = CText(unique=True)
    start_at = models.TextField(default="earliest")
    ordered = models.BooleanField(default=False)
    max_reconsume_times = models.IntegerField(null=True)
    retry_policy = models.JSONField(default=dict)
    paused = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "consumer_group"
        constraints = (
            models.CheckConstraint(condition=models.Q(start_at__in=("earliest", "latest")), name="group_start_known"),
        )

    def __str__(self) -> str:
        return str(self.name)


class RetryQueue(models.Model):
    """Which queue of a group's retry topic holds the messages of one topic, in the order of first need."""

    pk = models.CompositePrimaryKey("group_id", "topic_id")
    group_id = models.IntegerField()
    topic_id = models.IntegerField()
    queue_id = models.IntegerField()

    class Meta:
        db_table = "retry_queue"
        constraints = (models.UniqueConstraint(fields=("group_id", "queue_id"), name="retry_queue_of_one_topic"),)


class Receipt(models.Model):
    """A delivery in flight: a message of a group that is hidden until it is acked or its time is over.

    received ──ack──▶ done (deleted)
        └──nack, or its time over──▶ a retry in %RETRY%<group> after its delay, or a dead letter (deleted likewise)

    In an ordered group a message that fails is held in its place instead, and what follows it with the same sharding
    key is parked behind it; `expires_at` is then when it may be delivered again.
    The handle a consumer holds names the row and its nonce: whoever holds an older one is refused.
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
    # The topic the consumer asked for: a retried message lies in the retry topic, and goes back there.
    origin_topic_id = models.IntegerField()
    state = models.TextField()
    # In an ordered group always there, and empty for a message without a key; in any other group null.
    sharding_key = models.TextField(null=True)

    class Meta:
        db_table = "receipt"
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=("flight", "held", "parked")), name="receipt_state_known"
            ),
        )
        # The expiry takes what is over, the longest over first; what is held or parked waits for its consumers.
        indexes = (
            models.Index(fields=("expires_at",), condition=models.Q(state="flight"), name="receipt_expiry"),
            # An ordered group's batch in flight, beside any number of places that wait.
            models.Index(
                fields=("group_id", "topic_id", "queue_id", "queue_offset"),
                condition=models.Q(state="flight", sharding_key__isnull=False),
                name="receipt_ordered_flight",
            ),
            # From key to key of what an ordered group holds or has parked.
            models.Index(
                fields=("group_id", "topic_id", "queue_id", "sharding_key", "queue_offset"),
                condition=models.Q(state__in=("held", "parked")),
                name="receipt_waiting",
            ),
        )


class Redrive(models.Model):
    """A dead letter that was sent again. Append-only; partitioned by segment, so that it goes after its letter."""

    pk = models.CompositePrimaryKey("group_id", "queue_offset", "segment_id")
    segment_id = models.IntegerField()
    group_id = models.IntegerField()
    queue_offset = models.BigIntegerField()
    redriven_at = models.DateTimeField()

    class Meta:
        db_table = "redrive"


class Subscription(models.Model):
    """A consumer group's messages of a topic, pushed to a server, and how calling it has gone lately.

    healthy ──failures in a row──▶ open ──its time is over──▶ half_open ──an answer──▶ healthy
    disabled: by the server itself with 410, or after five days of only failures; until an operator changes it.

    Group and topic are named, as a consumer names them: without them it waits until they are there again.
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
    secret = models.TextField()
    previous_secret = models.TextField(null=True)
    rotated_at = models.DateTimeField(null=True)
    paused = models.BooleanField(default=False)
    state = models.TextField(default="healthy")
    failures = models.IntegerField(default=0)
    open_until = models.DateTimeField(null=True)
    # The first failure since the last success.
    failing_since = models.DateTimeField(null=True)
    last_failure = models.TextField(null=True)
    last_failure_at = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "subscription"
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=("healthy", "open", "half_open", "disabled")),
                name="subscription_state_known",
            ),
        )

    def __str__(self) -> str:
        return str(self.name)
