"""The rows that the statements of delivery return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID


class AckedReceipt(NamedTuple):
    """A row of ack_receipts, extend_receipts."""

    place: int


class CircuitState(NamedTuple):
    """A row of update_push_circuit."""

    state: str


class ConsumerGroupRow(NamedTuple):
    """A row of find_consumer_group."""

    id: int
    name: str
    start_at: str
    ordered: bool
    max_reconsume_times: int | None
    retry_policy: Any
    paused: bool


class DeadLetterPlace(NamedTuple):
    """A row of find_dead_letters, next_dead_letters."""

    queue_offset: int
    tags_code: int
    segment_id: int
    log_offset: int
    topic_id: int
    queue_id: int
    message_id: UUID


class DeadLetterRow(NamedTuple):
    """A row of read_dead_letters."""

    queue_offset: int
    tags_code: int
    reconsume_times: int
    entered_at: datetime
    segment_id: int
    log_offset: int
    stored_at: datetime
    born_at: datetime | None
    topic_id: int
    queue_id: int
    message_id: UUID
    transaction_id: UUID | None
    tags: str | None
    keys: list[str] | None
    sharding_key: str | None
    traceparent: str | None
    properties: bytes | None
    body: bytes
    body_form: str
    letters: int


class ExpiredFound(NamedTuple):
    """A row of find_expired."""

    now: datetime
    found: bool


class ExpiredReceipt(NamedTuple):
    """A row of take_expired."""

    group_id: int
    group_name: str
    max_reconsume_times: int | None
    retry_policy: Any
    origin_topic_id: int
    log_segment: int
    log_offset: int
    tags_code: int
    reconsume_times: int


class GroupId(NamedTuple):
    """A row of find_groups, hold_running_groups."""

    id: int


class HandedOut(NamedTuple):
    """A row of hand_out."""

    share: int
    entry_topic_id: int
    entry_queue_id: int
    queue_offset: int
    reconsume_times: int
    log_offset: int
    stored_at: datetime
    born_at: datetime | None
    message_id: UUID
    transaction_id: UUID | None
    tags: str | None
    keys: list[str] | None
    sharding_key: str | None
    traceparent: str | None
    properties: bytes | None
    body: bytes
    body_form: str


class HeldPlace(NamedTuple):
    """A row of read_places, read_places_of_keys."""

    topic_id: int
    queue_id: int
    queue_offset: int
    state: str
    waits: bool
    sharding_key: str
    segment_id: int
    log_offset: int
    tags_code: int
    reconsume_times: int


class HeldSubscription(NamedTuple):
    """A row of hold_subscription."""

    id: int


class LeftReceipt(NamedTuple):
    """A row of delete_left_receipts."""

    group_id: int


class LockedReceipt(NamedTuple):
    """A row of lock_expired, lock_receipts, take_receipts."""

    group_id: int
    topic_id: int
    queue_id: int
    queue_offset: int
    nonce: int
    group_name: str
    max_reconsume_times: int | None
    retry_policy: Any
    origin_topic_id: int
    log_segment: int
    log_offset: int
    tags_code: int
    reconsume_times: int


class OffsetAtTime(NamedTuple):
    """A row of offsets_at_time."""

    queue_id: int
    queue_offset: int


class OldReceipt(NamedTuple):
    """A row of lock_old_receipts."""

    group_id: int
    topic_id: int
    queue_id: int
    queue_offset: int
    log_segment: int
    log_offset: int


class OldestHeld(NamedTuple):
    """A row of find_oldest_held."""

    topic_id: int
    queue_id: int
    entered_at: datetime


class Probe(NamedTuple):
    """A row of claim_push_probe."""

    state: str
    failures: int
    open_until: datetime | None


class RedriveRow(NamedTuple):
    """A row of find_redrives."""

    group_name: str
    queue_offset: int
    redriven_at: datetime


class RetryQueueId(NamedTuple):
    """A row of find_retry_queue."""

    queue_id: int


class StandingRow(NamedTuple):
    """A row of find_standings."""

    group_name: str
    ordered: bool
    topic_id: int
    queue_id: int
    queue_offset: int
    passed: bool
    passed_at: datetime
    state: str
    received_at: datetime
    expires_at: datetime
    reconsume_times: int


class SubscriptionRow(NamedTuple):
    """A row of find_subscriptions."""

    id: int
    name: str
    group_name: str
    ordered: bool
    topic_name: str
    filter: Any | None
    url: str
    max_batch: int
    timeout_seconds: float
    concurrency: int
    secret: str
    previous_secret: str
    state: str
    failures: int
    open_until: datetime | None
    last_success_at: datetime | None
    now: datetime


class WaitingSubscription(NamedTuple):
    """A row of find_waiting_subscriptions."""

    id: int
