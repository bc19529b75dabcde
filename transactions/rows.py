"""The rows that the statements of transactions return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID


class BegunCount(NamedTuple):
    """A row of count_begun."""

    begun: int


class CheckAttemptRow(NamedTuple):
    """A row of find_check_attempts."""

    asked_at: datetime
    endpoint_url: str | None
    counted: bool
    status: int | None
    latency_ms: int | None
    answer: str | None
    reason: str | None


class CheckCount(NamedTuple):
    """A row of count_checks."""

    checks: int


class ClaimedHalf(NamedTuple):
    """A row of claim_halves."""

    transaction_id: UUID
    endpoint_id: int | None
    check_times: int
    log_segment: int
    log_offsets: list[int]
    stored_at: datetime
    last_failure: str | None
    claimed_bytes: int


class DiscardedHalf(NamedTuple):
    """A row of discard_halves."""

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


class EndedHalf(NamedTuple):
    """A row of end_halves."""

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


class EndpointId(NamedTuple):
    """A row of find_endpoint."""

    id: int


class EndpointRow(NamedTuple):
    """A row of find_callable_endpoints."""

    id: int
    url: str
    max_batch: int
    timeout_seconds: float
    concurrency: int
    secret: str
    previous_secret: str
    state: str
    failures: int
    open_until: datetime | None
    now: datetime


class GroupName(NamedTuple):
    """A row of find_producer_group_name."""

    name: str


class GroupWithDueHalves(NamedTuple):
    """A row of groups_with_due_halves."""

    group_id: int
    name: str
    now: datetime


class HeldGroup(NamedTuple):
    """A row of hold_groups."""

    id: int


class LimitedLockWait(NamedTuple):
    """A row of limit_lock_wait."""

    lock_timeout: str


class ListedDiscarded(NamedTuple):
    """A row of list_discarded."""

    transaction_id: UUID
    producer_group_id: int
    state: str
    check_times: int
    next_check_at: datetime
    last_failure: str | None
    stored_at: datetime
    decided_at: datetime | None
    decided_by: str
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    queue_offsets: list[int]
    discarded_at: datetime


class ListedEnded(NamedTuple):
    """A row of list_ended."""

    go_on_below: int
    operation_id: int
    transaction_id: UUID
    producer_group_id: int
    state: str
    decided_by: str
    decided_at: datetime
    check_times: int
    stored_at: datetime
    next_check_at: str
    last_failure: str
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    queue_offsets: list[int] | None


class ListedHalf(NamedTuple):
    """A row of list_halves."""

    transaction_id: UUID
    producer_group_id: int
    stored_at: datetime
    check_times: int
    next_check_at: datetime
    last_failure: str | None
    discarded_at: datetime | None
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    state: str
    decided_by: str
    decided_at: datetime | None
    queue_offsets: list[int]


class NextCheck(NamedTuple):
    """A row of check_now."""

    next_check_at: datetime
    check_times: int


class OperationCounts(NamedTuple):
    """A row of count_operations, sample_operations."""

    commits: int
    rollbacks: int
    begun: int


class OperationRow(NamedTuple):
    """A row of find_operations."""

    decision: str
    decided_by: str
    decided_at: datetime
    check_times: int
    remark: str | None


class OperationTotal(NamedTuple):
    """A row of ever_said."""

    operations: int


class OperationsSince(NamedTuple):
    """A row of operations_since."""

    seconds: int
    since: datetime
    lowest: int
    since_id: int
    next_id: int


class OutcomeCount(NamedTuple):
    """A row of check_outcomes."""

    outcome: str
    checks: int


class Probe(NamedTuple):
    """A row of claim_probe."""

    state: str
    failures: int
    open_until: datetime | None


class ProducerGroupRow(NamedTuple):
    """A row of find_producer_group."""

    id: int
    name: str
    reject_transaction_message: bool
    max_undecided: int | None
    checks_paused: bool


class ResumedHalf(NamedTuple):
    """A row of resume_halves."""

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


class SecondsToNextCheck(NamedTuple):
    """A row of seconds_to_next_check."""

    seconds: float


class SecondsUndecided(NamedTuple):
    """A row of half_to_end."""

    seconds: list[float]


class TopicName(NamedTuple):
    """A row of list_topic_names."""

    id: int
    name: str


class TransactionId(NamedTuple):
    """A row of find_exhausted, find_leftovers, find_outdated."""

    transaction_id: UUID


class TransactionRow(NamedTuple):
    """A row of find_transactions."""

    transaction_id: UUID
    producer_group_id: int
    endpoint_id: int
    state: str
    check_times: int
    next_check_at: datetime
    stored_at: datetime
    log_segment: int
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    queue_offsets: list[int]
    decided_by: str
    decided_at: datetime
    last_failure: str


class UndecidedCount(NamedTuple):
    """A row of count_undecided."""

    undecided: int


class WaitingHalves(NamedTuple):
    """A row of count_waiting."""

    producer_group: str
    state: str
    halves: int
    oldest_seconds: float
