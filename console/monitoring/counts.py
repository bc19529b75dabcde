"""Counts up to a limit, because counting a long table to the end takes too long."""

from dataclasses import dataclass

from store.messages.texts import counted

# Measured with 1,000,000 half messages: 0.7 ms to 10,000, 5 ms to 100,000, 100 ms and more to the end.
COUNT_LIMIT = 100_000
# The limit per group: a page counts at most this many rows for each of its groups.
GROUP_LIMIT = 10_000


@dataclass(frozen=True)
class Count:
    """A number of rows. `more`: counting stopped at the limit, and there are more rows."""

    rows: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.rows:,}{'+' if self.more else ''}"

    def __bool__(self) -> bool:
        return self.rows > 0


def up_to(limit: int, counted: int) -> Count:
    """Limits a number to `limit`. The caller has counted up to `limit` + 1, which shows whether there are more."""
    return Count(min(counted, limit), counted > limit)


def failures(count: int) -> str:
    """A number of failures, as text."""
    return counted(count, "failure")
