"""The rows that the statements of scheduling return: one type per shape, its fields the columns in their order.

A test prepares every statement and compares its columns with its type.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class RecalledEntry(NamedTuple):
    """A recalled entry of a level's queue."""

    queue_offset: int


class Standing(NamedTuple):
    """A message that was delayed: visible in a queue, waiting in a timer or a level's queue, or neither (all None)."""

    message_id: UUID
    kept: bool
    visible: bool | None
    timer_id: UUID | None
    due_at: datetime | None
    queue_id: int | None
    queue_offset: int | None
