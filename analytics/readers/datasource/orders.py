"""The order of each table that has one, and the positions that options give."""

from analytics.closed import ClosedRange
from analytics.connections import Connection
from analytics.readers.datasource.log_order import LogOrder
from analytics.readers.datasource.options import EARLIEST, Bound
from analytics.readers.datasource.positions import Order, Position
from analytics.readers.datasource.queue_order import QueueOrder

# The order of each table, and its field of SegmentRows.
ORDERS: dict[str, tuple[Order, str]] = {
    "committed": (QueueOrder(), "entries"),
    "entries": (QueueOrder(), "entries"),
    "messages": (LogOrder("log_offset"), "messages"),
    "transactions": (LogOrder("operation_id"), "operations"),
}


def positioned(order: Order, reader: Connection, ranges: ClosedRange, bound: Bound) -> Position:
    """The position of a bound in a closed range. Raises OptionRefused."""
    if bound.since:
        return order.since(reader, ranges, bound.since)
    end = order.first(ranges) if bound.end == EARLIEST else order.end(ranges)
    return end if bound.position is None else order.given(reader, ranges, bound.position, end)
