"""Topics that have left a cell: the database still has copies of their rows, which belong to another cell now."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, TypeVar

Row = TypeVar("Row")


class Departed(NamedTuple):
    """Topics that have left a database, and queues of the broker's own topics that hold their messages there.

    It belongs to an epoch of the cell, and changes only during a fence, after which no earlier session exists. Rows of
    these topics and queues are copies: the process skips them, and drops copies that become due.
    """

    epoch: int = -1
    topics: frozenset[int] = frozenset()
    queues: frozenset[int] = frozenset()

    def has(self, topic_id: int, queue_id: int) -> bool:
        """Whether the messages that wait for this queue are copies: the originals belong to another cell."""
        return topic_id in self.topics or packed(topic_id, queue_id) in self.queues

    def left_out(self, rows: Iterable[Row], topics: Callable[[Row], Collection[int | None]]) -> list[Row]:
        """The rows that are no copies. A row is a copy if all its topics have left."""
        return [row for row in rows if not self.topics or not self.topics.issuperset(topics(row))]


def packed(topic_id: int, queue_id: int) -> int:
    """A queue of a topic as one number, the form of `CellIdentity.departed_queues`."""
    return topic_id << 32 | queue_id
