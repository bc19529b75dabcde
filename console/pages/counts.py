"""Reads counts that several pages of the console show, and cuts long lists into parts that continue after a name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from console.monitoring.counts import GROUP_LIMIT
from console.pages import readings
from transactions.reads import summary
from transactions.reads.summary import Pending
from transactions.rows import ReasonOfHalves

Row = TypeVar("Row")


def pending() -> list[Pending]:
    """The pending transactions of each producer group, counted up to GROUP_LIMIT + 1."""
    return summary.pending(GROUP_LIMIT + 1)


def reasons() -> dict[str, list[ReasonOfHalves]]:
    """The reasons why transactions are pending, by producer group."""
    return summary.reasons(len(readings.shared(pending)))


@dataclass(frozen=True)
class Part(Generic[Row]):
    """The rows of a page, and the name after which the next page begins; empty on the last page."""

    rows: list[Row]
    after: str


def part(found: Sequence[Row], size: int, name: str = "name") -> Part[Row]:
    """The first `size` rows as a page; up to `size` + 1 rows were read, to see whether there are more."""
    shown = list(found[:size])
    return Part(shown, str(getattr(shown[-1], name)) if len(found) > size else "")
