"""The types of rows that statements of checks return. Their fields are the columns in their order."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class ClaimedHalf(NamedTuple):
    """A half message that only this process asks about until the claim ends. `claimed_bytes`: of the whole claim."""

    transaction_id: UUID
    endpoint_id: int | None
    check_times: int
    log_segment: int
    log_offsets: list[int]
    last_failure: str | None
    claimed_until: datetime
    claimed_bytes: int
