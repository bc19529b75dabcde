"""Counts that stop at a limit: an exact count of a million rows reads a million rows."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

# Measured with 1,000,000 half messages: 0.7 ms to 10,000, 5 ms to 100,000, 100 ms and more to the end.
COUNT_LIMIT = 100_000


@dataclass(frozen=True)
class Count:
    """A number of rows; `more` says that counting stopped there."""

    rows: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.rows:,}{'+' if self.more else ''}"

    def __bool__(self) -> bool:
        return self.rows > 0


def up_to(rows: QuerySet[Any, Any], limit: int = COUNT_LIMIT) -> Count:
    """How many rows there are, counted to `limit` at most."""
    counted = rows.order_by()[: limit + 1].count()
    return Count(min(counted, limit), counted > limit)
