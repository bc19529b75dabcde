"""Readings that pages share, and lists that go on behind a name: what pages of long tables show instead of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from console.monitoring.counts import GROUP_LIMIT
from console.pages import readings
from transactions.reads import summary
from transactions.reads.summary import Pending, ReasonOfHalves

Row = TypeVar("Row")


def pending() -> list[Pending]:
    """What each producer group has pending, counted to one more than GROUP_LIMIT."""
    return summary.pending(GROUP_LIMIT + 1)


def reasons() -> dict[str, list[ReasonOfHalves]]:
    """Why the transactions of each producer group are pending."""
    return summary.reasons(len(readings.shared(pending)))


@dataclass(frozen=True)
class Part(Generic[Row]):
    """Rows of a page, and the name that the next page goes on behind (empty: there is none)."""

    rows: list[Row]
    after: str


def part(found: Sequence[Row], size: int, name: str = "name") -> Part[Row]:
    """The first `size` of rows that were read one further, to see whether there are more."""
    shown = list(found[:size])
    return Part(shown, str(getattr(shown[-1], name)) if len(found) > size else "")
