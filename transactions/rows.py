"""The rows of the statements of transactions: one type per shape, its fields the columns in their order, by a test."""

from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

State = Literal["PREPARED", "COMMITTED", "ROLLED_BACK", "DISCARDED"]
Decision = Literal["COMMIT", "ROLLBACK", "UNKNOWN", "DISCARD", "RESUME"]
Decider = Literal["producer", "check", "operator", "limit"]
# What a check was answered.
CheckAnswer = Literal["COMMIT", "ROLLBACK", "UNKNOWN"]

# Producer groups and their endpoints.


class ProducerGroupRow(NamedTuple):
    """A producer group as the message path needs it."""

    id: int
    name: str
    reject_transaction_message: bool
    max_undecided: int | None
    checks_paused: bool
    api_keys: list[str] | None


class NamedGroup(NamedTuple):
    """A producer group's id and its name."""

    id: int
    name: str


class HeldGroup(NamedTuple):
    """A producer group that exists, and cannot be deleted before the transaction ends."""

    id: int


class LimitedLockWait(NamedTuple):
    """The lock timeout that the transaction has now."""

    lock_timeout: str


class TopicName(NamedTuple):
    """A topic, to be compared with what a key may produce to."""

    id: int
    name: str


class EndpointId(NamedTuple):
    """The endpoint that a group has at a URL."""

    id: int


class EndpointRow(NamedTuple):
    """An endpoint that may be called at the database's time `now`; `previous_secret` only while it still signs."""

    id: int
    url: str
    max_batch: int
    timeout_seconds: float
    concurrency: int
    secret: str
    previous_secret: str | None
    state: str
    failures: int
    open_until: datetime | None
    now: datetime


class Probe(NamedTuple):
    """The circuit of an endpoint whose one probe was claimed."""

    state: str
    failures: int
    open_until: datetime | None


class CircuitState(NamedTuple):
    """The state that an endpoint's circuit has after a call."""

    state: str


# Transactions. Lists run in parallel, one element per message.


class TransactionRow(NamedTuple):
    """A transaction: its half message while it is undecided, else the operation that decided it.

    `endpoint_id`, `next_check_at` and `last_failure` are a half message's; `queue_offsets` are a commit's, each null
    while its message is delayed; `decided_at` of a discarded one is the time of its discard.
    """

    transaction_id: UUID
    producer_group_id: int
    endpoint_id: int | None
    state: State
    check_times: int
    next_check_at: datetime | None
    stored_at: datetime
    log_segment: int
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    queue_offsets: list[int | None] | None
    decided_by: Decider | None
    decided_at: datetime | None
    last_failure: str | None


class ListedEnd(NamedTuple):
    """A decided transaction of a list: the columns of TransactionRow behind the place where the next page begins.

    `go_on_below` is null when no older operation is left. A list without a match is one row whose columns are null from
    `operation_id` on.
    """

    go_on_below: int | None
    operation_id: int | None
    transaction_id: UUID
    producer_group_id: int
    endpoint_id: int | None
    state: State
    check_times: int
    next_check_at: datetime | None
    stored_at: datetime
    log_segment: int
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    queue_offsets: list[int | None] | None
    decided_by: Decider | None
    decided_at: datetime | None
    last_failure: str | None


class TransactionId(NamedTuple):
    """A transaction that is to be discarded or rolled back."""

    transaction_id: UUID


class EndedHalf(NamedTuple):
    """A half message that was deleted: that delete is the decision. `delays` is null when no message is delayed."""

    transaction_id: UUID
    producer_group_id: int
    stored_at: datetime
    check_times: int
    log_segment: int
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    tags_codes: list[int]
    delays: Any | None
    was_discarded: bool


class DiscardedHalf(NamedTuple):
    """A half message that was discarded, with the reason why its last check decided nothing."""

    transaction_id: UUID
    producer_group_id: int
    stored_at: datetime
    check_times: int
    log_segment: int
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    tags_codes: list[int]
    last_failure: str | None


class ResumedHalf(NamedTuple):
    """A discarded half message that is pending again, with the time of its first check."""

    transaction_id: UUID
    producer_group_id: int
    stored_at: datetime
    check_times: int
    log_segment: int
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    next_check_at: datetime


class OperationRow(NamedTuple):
    """What was recorded of a transaction: COMMIT, ROLLBACK, UNKNOWN, DISCARD or RESUME, and by whom."""

    decision: Decision
    decided_by: Decider
    decided_at: datetime
    check_times: int
    remark: str | None


# Checks.


class CheckAttemptRow(NamedTuple):
    """One check of a transaction, and its answer."""

    asked_at: datetime
    endpoint_url: str | None
    counted: bool
    status: int | None
    latency_ms: int | None
    answer: CheckAnswer | None
    reason: str | None


# Stats.


class UndecidedCount(NamedTuple):
    """How many transactions of a group are pending, up to a limit."""

    undecided: int


class WaitingHalves(NamedTuple):
    """The undecided transactions of a producer group in one state, with the age of the oldest."""

    producer_group: str
    state: str
    halves: int
    oldest_seconds: float


class BegunCount(NamedTuple):
    """How many undecided transactions were begun since a time, up to a limit."""

    begun: int


class CheckCount(NamedTuple):
    """How many checks were asked since a time, up to a limit."""

    checks: int


class OutcomeCount(NamedTuple):
    """How many checks had one outcome."""

    outcome: str
    checks: int


class OperationCounts(NamedTuple):
    """The decisions of a range of operations, and how many of their transactions were begun in the same time."""

    commits: int
    rollbacks: int
    begun: int


class OperationTotal(NamedTuple):
    """How many operations were ever recorded."""

    operations: int


class OperationsSince(NamedTuple):
    """The range of operations of a window: from `since_id` up to, without it, `next_id`; `lowest` is the first kept."""

    seconds: int
    since: datetime
    lowest: int
    since_id: int
    next_id: int


class SecondsUndecided(NamedTuple):
    """The median and the 99th percentile of the seconds from half message to end; null without an end."""

    seconds: list[float] | None


class PendingOfGroup(NamedTuple):
    """The pending transactions of a producer group: their number, up to a limit, and when the oldest was stored."""

    group_id: int
    pending: int
    oldest_pending_at: datetime | None


class AllUndecided(NamedTuple):
    """The undecided transactions of all groups by state, up to a limit, and when the oldest pending one was stored."""

    pending: int
    oldest_pending_at: datetime | None
    discarded: int


class MinuteOfEnds(NamedTuple):
    """The commits and rollbacks of one minute, and the time of its first operation."""

    minute: datetime
    first_at: datetime
    commits: int
    rollbacks: int


class HalfCount(NamedTuple):
    """How many undecided transactions match, up to a limit."""

    halves: int
