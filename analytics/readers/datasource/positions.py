"""Positions of streams: which rows of a closed range have not been read, by one order for the log or one per queue.

A position is the first offset that has not been read. Spark keeps it in the checkpoint, as JSON.
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
        """The position of the oldest row that is kept."""

    def end(self, ranges: ClosedRange, start: Position | None = None) -> Position:
        """The position after the last final row; `start` if there is no final row. Raises LogBehind."""

    def since(self, reader: Connection, ranges: ClosedRange, time: datetime) -> Position:
        """The position of the first row at or after a time; without such a row, the end."""

    def given(
        self, reader: Connection, ranges: ClosedRange, position: Mapping[str, object], others: Position
    ) -> Position:
        """The position that the user gives; `others` has the offsets that it does not name. Raises OptionRefused."""

    def limited(self, start: Position, end: Position, most: int) -> Position:
        """The position `most` offsets after `start`, but not after `end`."""

    def clauses(self, ranges: ClosedRange, start: Position, end: Position, rows: int) -> list[tuple[int, str]]:
        """The WHERE clauses of the slices between two positions, each with its segment. Raises HoleFound."""


def both(one: Span, other: Span) -> Span | None:
    """The offsets that both spans have in common."""
    first, last = max(one.first, other.first), min(one.last, other.last)
    return Span(first, last) if first <= last else None


def dropped(what: str) -> str:
    """The sentence for a hole: rows that retention dropped before a stream read them."""
    return (
        f"Retention dropped {what} before this stream read them: begin a new checkpoint, which reads on from the "
        "oldest message that is kept."
    )


def behind(read_on: str, end: str) -> str:
    """The sentence for a log that ends before the position of a stream."""
    return (
        f"This stream has read {read_on}, and {end}: a back-up was restored, or the checkpoint is of another database. "
        "Begin a new checkpoint."
    )
