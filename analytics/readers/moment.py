"""Captures the moment of an export: the closed range, and by the same snapshot the tables that change or are small."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from analytics import closed
from analytics.closed import ClosedRange
from analytics.readers import counts
from analytics.readers.source import Source
from analytics.rows import Undecided
from analytics.tables import CHECKS, TIMERS, UNDECIDED


@dataclass(frozen=True, slots=True)
class Moment:
    """A closed range with the frames of its snapshot, which are kept: the snapshot itself is over."""

    closed: ClosedRange
    undecided: DataFrame
    checks: DataFrame
    timers: DataFrame
    # Of the same snapshot, by SQL.
    counted: Undecided


def capture(source: Source, conninfo: str, checks_from: int) -> Moment:
    """The moment now, with the checks from a segment on. Raises LogBusy."""
    with closed.quiet(conninfo) as (reader, first):
        return Moment(
            closed=closed.find(reader),
            undecided=source.whole(UNDECIDED, first),
            checks=source.whole(CHECKS, first, f"segment_id >= {checks_from:d}"),
            timers=source.whole(TIMERS, first),
            counted=counts.undecided(reader, checks_from),
        )
