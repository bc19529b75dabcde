"""Reads counts that several pages of the console show."""

from console.monitoring.counts import GROUP_LIMIT
from console.pages import readings
from transactions.reads import summary
from transactions.reads.summary import Pending
from transactions.rows import ReasonOfHalves


def pending() -> list[Pending]:
    """The pending transactions of each producer group, counted up to GROUP_LIMIT + 1."""
    return summary.pending(GROUP_LIMIT + 1)


def reasons() -> dict[str, list[ReasonOfHalves]]:
    """The reasons why transactions are pending, by producer group."""
    return summary.reasons(len(readings.shared(pending)))
