"""Positions of streams: what of a closed range is not read yet, in one order for the log or in one for each queue.

A position is what Spark keeps in the checkpoint as JSON: the first offsets that are not read yet.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from analytics.closed import ClosedRange, Span
from analytics.connections import Connection

Position = dict[str, Any]


class Order(Protocol):
    """The order in which the rows of a table are streamed."""

    def first(self, ranges: ClosedRange) -> Position:
        """The oldest row that is kept."""

    def end(self, ranges: ClosedRange, start: Position | None = None) -> Position:
        """Behind the last row that is final; as `start` where there is none. Raises LogBehind."""

    def since(self, reader: Connection, ranges: ClosedRange, time: datetime) -> Position:
        """The first row from a time on, else the end."""

    def given(self, reader: Connection, ranges: ClosedRange, position: Mapping[str, object]) -> Position:
        """What the option startingOffsets says. Raises OptionRefused."""

    def limited(self, start: Position, end: Position, most: int) -> Position:
        """From `start` on `most` offsets, at most up to `end`."""

    def clauses(self, ranges: ClosedRange, start: Position, end: Position, rows: int) -> list[tuple[int, str]]:
        """The slices between two positions, each with its segment. Raises HoleFound."""


def both(one: Span, other: Span) -> Span | None:
    """The offsets that are in both spans."""
    first, last = max(one.first, other.first), min(one.last, other.last)
    return Span(first, last) if first <= last else None


def dropped(what: str) -> str:
    """The sentence of a hole."""
    return (
        f"Retention dropped {what} before this stream read them: begin a new checkpoint, which reads on from the "
        "oldest message that is kept."
    )


def behind(read_on: str, end: str) -> str:
    """The sentence of a log that ends before a position."""
    return (
        f"This stream has read {read_on}, and {end}: a back-up was restored, or the checkpoint is of another database. "
        "Begin a new checkpoint."
    )
