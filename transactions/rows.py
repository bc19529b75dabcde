"""The rows of the statements of transactions: one type per shape, its fields the columns in their order, by a test."""

from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

State = Literal["PREPARED", "COMMITTED", "ROLLED_BACK", "DISCARDED"]
Decision = Literal["COMMIT", "ROLLBACK", "UNKNOWN", "DISCARD", "RESUME"]
Decider = Literal["producer", "check", "operator", "limit"]
# What a check was answered.
CheckAnswer = Literal["COMMIT", "ROLLBACK", "UNKNOWN"]
# A state as a producer gives it: RocketMQ's spellings are taken, too, and never answered.
GivenState = Literal["COMMIT", "ROLLBACK", "UNKNOWN", "COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"]
STATE_OF: dict[GivenState, CheckAnswer] = {
    "COMMIT": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "UNKNOWN": "UNKNOWN",
    "COMMIT_MESSAGE": "COMMIT",
    "ROLLBACK_MESSAGE": "ROLLBACK",
    "UNKNOW": "UNKNOWN",
}

# Producer groups and their endpoints.


class ProducerGroupRow(NamedTuple):
    """A producer group as the message path needs it."""

    id: int
    name: str
    reject_transaction_message: bool
    max_undecided: int | None
    checks_paused: bool
    api_keys: list[str] | None


class HeldGroup(NamedTuple):
    """A producer group that exists, and cannot be deleted before the transaction ends."""

    id: int


class EndpointId(NamedTuple):
    """The endpoint that a group has at a URL."""

    id: int


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


class WaitingHalves(NamedTuple):
    """The undecided transactions of a producer group in one state, with the age of the oldest."""

    producer_group: str
    state: str
    halves: int
    oldest_seconds: float


class HalfMessagesOfTopic(NamedTuple):
    """The half messages of a topic whose transactions are in one state."""

    topic: str
    state: str
    messages: int


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
