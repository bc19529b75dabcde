"""The rows that the statements of delivery return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from store.messages import MessageRow


class GroupFacts(NamedTuple):
    """A consumer group as the message path needs it. `max_reconsume_times` None: the broker's MAX_RECONSUME_TIMES."""

    id: int
    name: str
    start_at: str
    ordered: bool
    max_reconsume_times: int | None
    retry_policy: Any
    paused: bool


class GroupId(NamedTuple):
    """The id of a consumer group that exists."""

    id: int


class HeldGroup(NamedTuple):
    """A consumer group as it is now and stays until the transaction ends."""

    id: int
    paused: bool
    ordered: bool


class RetryQueueId(NamedTuple):
    """The number of the queue of a group's retry topic that holds one topic's messages."""

    queue_id: int


class HeldReadings(NamedTuple):
    """The numbers of the readings whose groups are locked and not paused, as the register `mq.readings` has them."""

    readings: str


class HandedEntries(NamedTuple):
    """What a batch hands out, packed: the readings that were not left out, those that were cut, and the entries."""

    readings: bytes | None
    cut: bytes | None
    handed: bytes | None
    moved: bool
    named: bool


class OrderedReceipt(NamedTuple):
    """A receipt of an ordered group in one of its queues. `waits`: `expires_at` is still to come."""

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


class SettledHandle(NamedTuple):
    """A handle whose delivery was acked or extended: its number in the arrays, from 1."""

    number: int


class FailedReceipt(NamedTuple):
    """A delivery that was nacked, returned or is over, with what its group says about retries."""

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


class ExpiryProbe(NamedTuple):
    """Whether any delivery is over, and the database's time of this answer."""

    now: datetime
    found: bool


class ReceiptOfLog(NamedTuple):
    """A receipt whose message lies in a segment that is dropped next."""

    group_id: int
    topic_id: int
    queue_id: int
    queue_offset: int
    log_segment: int
    log_offset: int


class DeletedReceipt(NamedTuple):
    """A receipt that was deleted because its group is gone."""

    group_id: int


class OldestReceipt(NamedTuple):
    """The lowest entry of a queue for which a group has a receipt, by when the entry became visible."""

    group_id: int
    topic_id: int
    queue_id: int
    entered_at: datetime


class OffsetAtTime(NamedTuple):
    """The first offset of a queue whose entry became visible at a time or after it."""

    queue_id: int
    queue_offset: int


class DeadLetterHead(NamedTuple):
    """A dead letter without its message's fields: what a redrive needs of it."""

    queue_offset: int
    tags_code: int
    segment_id: int
    log_offset: int
    topic_id: int
    queue_id: int
    message_id: UUID


class DeadLetterEntry(MessageRow, gc=False):
    """A dead letter with its message. `letters` is the number found before the page was cut to its bytes.

    `bytes_before`: those of the bodies before it on its page.
    """

    queue_offset: int
    reconsume_times: int
    entered_at: datetime
    letters: int
    bytes_before: int
    reason: str | None


class GroupDeadLetters(NamedTuple):
    """A consumer group that has dead letters, their number, and when the last one died."""

    group_name: str
    letters: int
    last_dead_at: datetime


class ListedDeadLetter(NamedTuple):
    """A dead letter of a list, without its body; None from `queue_offset` on beside `go_on_before` without a match."""

    go_on_before: int | None
    queue_offset: int | None
    message_id: UUID | None
    topic: str | None
    tags: str | None
    keys: list[str] | None
    reconsume_times: int | None
    dead_at: datetime | None
    size: int | None
    reason: str | None


class NarrowedDeadLetter(NamedTuple):
    """A dead letter that matches a filter; None from `queue_offset` on beside `go_on_at` without a match."""

    go_on_at: int | None
    queue_offset: int | None
    message_id: UUID | None


class DescribedDeadLetter(NamedTuple):
    """What a preview says of a dead letter; `topic` is None once that was deleted."""

    queue_offset: int
    message_id: UUID
    topic: str | None
    keys: list[str] | None
    reconsume_times: int
    reason: str | None


class SharedByDeadLetters(NamedTuple):
    """The number of dead letters that share the value of a field: topic, tags, attempts, hour or reason."""

    field: str
    shared_value: str
    letters: int


class KeptNack(NamedTuple):
    """A delivery of a message that a group gave back, with the reason."""

    group_name: str
    nacked_at: datetime
    reconsume_times: int
    reason: str


class RedrivenLetter(NamedTuple):
    """When a dead letter of a group was sent again."""

    group_name: str
    queue_offset: int
    redriven_at: datetime


class GroupAtEntry(NamedTuple):
    """A consumer group at an entry of a message: whether it has read past it, and its receipt for it, if any.

    `passed_at` is None where the move that passed the entry is not kept any more.
    """

    group_name: str
    ordered: bool
    topic_id: int
    queue_id: int
    queue_offset: int
    passed: bool
    passed_at: datetime | None
    state: str | None
    received_at: datetime | None
    expires_at: datetime | None
    reconsume_times: int | None


class SubscriptionId(NamedTuple):
    """The id of a subscription that may be pushed; of find_waiting_subscriptions: and has something to push."""

    id: int


class PushedSubscription(NamedTuple):
    """A subscription that may be pushed, with its circuit. `previous_secret` is None once its rotation is over."""

    id: int
    name: str
    group_name: str
    ordered: bool
    topic_name: str
    filter: Any
    url: str
    max_batch: int
    timeout_seconds: float
    concurrency: int
    secret: str
    previous_secret: str | None
    state: str
    failures: int
    open_until: datetime | None
    last_success_at: datetime | None
    now: datetime


class Probe(NamedTuple):
    """The circuit of a subscription whose one probe this process has claimed."""

    state: str
    failures: int
    open_until: datetime


class CircuitState(NamedTuple):
    """The state of a subscription's circuit after a call."""

    state: str


class LetterCount(NamedTuple):
    """How many dead letters there are, up to a limit."""

    letters: int
