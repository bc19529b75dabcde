"""The types of rows that statements of transactions return. A test compares their fields with the columns."""

from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

State = Literal["PREPARED", "COMMITTED", "ROLLED_BACK", "DISCARDED"]
Decision = Literal["COMMIT", "ROLLBACK", "UNKNOWN", "DISCARD", "RESUME"]
Decider = Literal["producer", "check", "operator", "limit"]
# The answer to a check.
CheckAnswer = Literal["COMMIT", "ROLLBACK", "UNKNOWN"]
# A state in a producer's request. RocketMQ's spellings are accepted too, but not used in answers.
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


# Transactions. Lists have one element for each message, in the same order.


class TransactionRow(NamedTuple):
    """A transaction: its half message while it is undecided, else the operation that decided it.

    Only a half message has `endpoint_id`, `next_check_at` and `last_failure`. Only a commit has `queue_offsets`, each
    null while its message is delayed. `decided_at` of a discarded transaction is the time of the discard.
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
    """A discarded half message, with the reason why its last check decided nothing."""

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
    """An operation of a transaction (COMMIT, ROLLBACK, UNKNOWN, DISCARD or RESUME), and by whom."""

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
