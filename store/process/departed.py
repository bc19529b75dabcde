"""What lies in a cell's database and is another cell's, since topics have left it."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, TypeVar

Row = TypeVar("Row")


class Departed(NamedTuple):
    """Topics that have left a database, and the queues of the broker's own topics that hold their messages there.

    As of an epoch of the cell: it changes behind a fence only, none of whose sessions live on. Rows of these
    are copies, which are passed over, or dropped where they would be due.
    """

    epoch: int = -1
    topics: frozenset[int] = frozenset()
    queues: frozenset[int] = frozenset()

    def has(self, topic_id: int, queue_id: int) -> bool:
        """Whether what waits for a queue of a topic is another cell's."""
        return topic_id in self.topics or packed(topic_id, queue_id) in self.queues

    def left_out(self, rows: Iterable[Row], topics: Callable[[Row], Collection[int | None]]) -> list[Row]:
        """The rows without the copies: a row is one where all of its topics have left."""
        return [row for row in rows if not self.topics or not self.topics.issuperset(topics(row))]


def packed(topic_id: int, queue_id: int) -> int:
    """A queue of a topic as one number, as `CellIdentity` keeps it."""
    return topic_id << 32 | queue_id
