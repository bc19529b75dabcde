"""The rows that the statements of delivery return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from typing import Any, NamedTuple


class GroupFacts(NamedTuple):
    """The fields of a consumer group for the message path. `max_reconsume_times` None: MAX_RECONSUME_TIMES."""

    id: int
    name: str
    start_at: str
    ordered: bool
    queue_order: str
    fair_by: str | None
    limits: Any
    max_reconsume_times: int | None
    retry_policy: Any
    paused: bool


class OrderedReceipt(NamedTuple):
    """A receipt of an ordered group in one of its queues. `waits`: `expires_at` is in the future."""

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


class FailedReceipt(NamedTuple):
    """A delivery that was nacked, returned or expired, with its group's retry policy.

    `max_reconsume_times` is the limit of the message, or else of its group; None: MAX_RECONSUME_TIMES of the broker.
    """

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


class SharedByDeadLetters(NamedTuple):
    """The number of dead letters that share the value of a field: topic, tags, attempts, hour or reason."""

    field: str
    shared_value: str
    letters: int


class NackRow(NamedTuple):
    """A nacked delivery of a message, with the reason."""

    group_name: str
    nacked_at: datetime
    reconsume_times: int
    reason: str


class SettledHandle(NamedTuple):
    """A handle whose delivery was acked, extended or returned: its position in the parameters' arrays, from 1."""

    number: int
