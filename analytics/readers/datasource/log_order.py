"""The order in which a stream reads the commit log or the operations: one offset for all rows."""

from collections.abc import Mapping
from datetime import datetime

from analytics.closed import ClosedRange, Span
from analytics.connections import Connection, read
from analytics.errors import HoleFound, LogBehind, OptionRefused
from analytics.readers import slices
from analytics.readers.datasource.positions import Position, behind, both, dropped
from analytics.rows import Since
from store.db.statements import Statement

LOG_OFFSET_SINCE = Statement(__file__, "log_offset_since", Since)


class LogOrder:
    """A stream order with one offset for all rows: the log offset or the operation id."""

    def __init__(self, column: str) -> None:
        self.column = column

    def first(self, ranges: ClosedRange) -> Position:
        spans = self._spans(ranges)
        return self._at(min((span.first for _, span in spans), default=0))

    def end(self, ranges: ClosedRange, start: Position | None = None) -> Position:
        spans, begun = self._spans(ranges), start[self.column] if start else 0
        # If retention dropped all rows, there is nothing to read.
        end = max((span.last + 1 for _, span in spans), default=begun)
        if end < begun:
            raise LogBehind(behind(f"the {self._offsets} below {begun}", f"the log ends before {end}"))
        return self._at(end)

    def since(self, reader: Connection, ranges: ClosedRange, time: datetime) -> Position:
        ends = {name: LogOrder(name).end(ranges)[name] - 1 for name in Since._fields}
        [found] = read(reader, LOG_OFFSET_SINCE, {"since": time, **{f"last_{name}": end for name, end in ends.items()}})
        offset: int | None = getattr(found, self.column)
        return self.end(ranges) if offset is None else self._at(offset)

    def given(
        self, reader: Connection, ranges: ClosedRange, position: Mapping[str, object], others: Position
    ) -> Position:
        offset = position.get(self.column)
        if list(position) != [self.column] or not isinstance(offset, int) or offset < 0:
            raise OptionRefused(f'The offsets are {dict(position)}: give {{"{self.column}": 100}} for this table.')
        return self._at(offset)

    def limited(self, start: Position, end: Position, most: int) -> Position:
        return self._at(min(end[self.column], start[self.column] + most))

    def clauses(self, ranges: ClosedRange, start: Position, end: Position, rows: int) -> list[tuple[int, str]]:
        wanted, spans = Span(start[self.column], end[self.column] - 1), self._spans(ranges)
        if wanted.last < wanted.first:
            return []
        lowest = min((span.first for _, span in spans), default=wanted.last + 1)
        if wanted.first < lowest:
            raise HoleFound(dropped(f"the {self._offsets} {wanted.first} to {lowest - 1}"))
        return [
            (segment, clause)
            for segment, span in spans
            if (piece := both(span, wanted))
            for clause in slices.of_span(self.column, segment, piece, rows)
        ]

    @property
    def _offsets(self) -> str:
        return "log offsets" if self.column == "log_offset" else "operations"

    def _at(self, offset: int) -> Position:
        return {self.column: offset}

    def _spans(self, ranges: ClosedRange) -> list[tuple[int, Span]]:
        of = "messages" if self.column == "log_offset" else "operations"
        return [(segment.id, span) for segment in ranges.segments if (span := getattr(segment, of))]
