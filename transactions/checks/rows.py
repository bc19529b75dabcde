"""The rows that the statements of checks return: one type per shape, its fields the columns in their order."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class GroupWithDueHalves(NamedTuple):
    """A producer group whose checks are due, and that has an endpoint which may be called."""

    group_id: int
    name: str


class ClaimedHalf(NamedTuple):
    """A half message that no other process asks about until the claim ends; `claimed_bytes` are the whole claim's."""

    transaction_id: UUID
    endpoint_id: int | None
    check_times: int
    log_segment: int
    log_offsets: list[int]
    last_failure: str | None
    claimed_until: datetime
    claimed_bytes: int


class RenewedClaim(NamedTuple):
    """A half message whose claim was prolonged."""

    claimed_until: datetime


class NextCheck(NamedTuple):
    """When a pending half message is checked next, and how many checks it has had."""

    next_check_at: datetime
    check_times: int


class SecondsToNextCheck(NamedTuple):
    """Seconds until a group's next check is due, negative when it is late; null when no half message is pending."""

    seconds: float | None
