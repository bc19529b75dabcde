"""Captures the moment of an export: the closed range, and by the same snapshot the tables that change or are small."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from analytics import closed, counts
from analytics.closed import ClosedRange
from analytics.rows import Undecided
from analytics.source import Source
from analytics.tables.checks import ATTEMPTS
from analytics.tables.names import NAMES
from analytics.tables.transactions import HALVES
from store.db.statements import Statement

READ_HALVES = Statement(__file__, "read_halves")
READ_ATTEMPTS = Statement(__file__, "read_attempts")
READ_TOPICS = Statement(__file__, "read_topics")
READ_GROUPS = Statement(__file__, "read_groups")


@dataclass(frozen=True, slots=True)
class Moment:
    """A closed range with the frames of its snapshot, which are kept: the snapshot itself is over."""

    closed: ClosedRange
    topics: DataFrame
    groups: DataFrame
    halves: DataFrame
    attempts: DataFrame
    # Of the same snapshot, by SQL.
    counted: Undecided


def capture(source: Source, conninfo: str) -> Moment:
    """The moment now. Raises LogBusy."""
    with closed.quiet(conninfo) as (reader, first):
        return Moment(
            closed=closed.find(reader),
            topics=source.whole(READ_TOPICS, NAMES, first),
            groups=source.whole(READ_GROUPS, NAMES, first),
            halves=source.whole(READ_HALVES, HALVES, first),
            attempts=source.whole(READ_ATTEMPTS, ATTEMPTS, first),
            counted=counts.undecided(reader),
        )
