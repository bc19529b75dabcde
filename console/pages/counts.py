"""Counts that stopped at a limit, and lists that go on behind a name: what pages of long tables show instead of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from console.pages import readings
from transactions.reads import summary
from transactions.reads.summary import Pending, ReasonOfHalves

Row = TypeVar("Row")

# Measured with 1,000,000 half messages: 0.7 ms to 10,000, 5 ms to 100,000, 100 ms and more to the end.
COUNT_LIMIT = 100_000
# Per group of a page, so that a page counts so many times its groups at most.
GROUP_LIMIT = 10_000


@dataclass(frozen=True)
class Count:
    """A number of rows; `more` says that counting stopped there."""

    rows: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.rows:,}{'+' if self.more else ''}"

    def __bool__(self) -> bool:
        return self.rows > 0


def pending() -> list[Pending]:
    """What each producer group has pending, counted to one more than GROUP_LIMIT."""
    return summary.pending(GROUP_LIMIT + 1)


def reasons() -> dict[str, list[ReasonOfHalves]]:
    """Why the transactions of each producer group are pending."""
    return summary.reasons(len(readings.shared(pending)))


def up_to(limit: int, counted: int) -> Count:
    """A count to `limit` of rows that were counted one further, to see whether there are more."""
    return Count(min(counted, limit), counted > limit)


@dataclass(frozen=True)
class Part(Generic[Row]):
    """Rows of a page, and the name that the next page goes on behind (empty: there is none)."""

    rows: list[Row]
    after: str


def part(found: Sequence[Row], size: int, name: str = "name") -> Part[Row]:
    """The first `size` of rows that were read one further, to see whether there are more."""
    shown = list(found[:size])
    return Part(shown, str(getattr(shown[-1], name)) if len(found) > size else "")
