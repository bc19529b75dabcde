"""Captures the moment of an export: the closed range, and by the same snapshot all other tables."""

from dataclasses import dataclass

from analytics import closed
from analytics.closed import ClosedRange
from analytics.export import pipeline
from analytics.files.place import Place
from analytics.readers import counts
from analytics.readers.source import Source
from analytics.rows import Undecided
from analytics.tables import CHECKS, TIMERS, UNDECIDED


@dataclass(frozen=True, slots=True)
class Moment:
    """A closed range, and the numbers of rows of the other tables in its snapshot. The snapshot has ended."""

    closed: ClosedRange
    counted: Undecided


def capture(source: Source, conninfo: str, checks_from: int, to: Place) -> Moment:
    """Captures the present moment and writes the tables of its snapshot to the place `to`. Raises LogBusy.

    Checks are written from the segment `checks_from` on.
    """
    with closed.quiet(conninfo) as (reader, first):
        pipeline.of_moment(source, UNDECIDED, first, "true", to, "transactions_open")
        pipeline.of_moment(source, CHECKS, first, f"segment_id >= {checks_from:d}", to, "checks")
        pipeline.of_moment(source, TIMERS, first, "true", to, "timers")
        return Moment(closed.find(reader), counts.undecided(reader, checks_from))
