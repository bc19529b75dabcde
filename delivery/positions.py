"""Where a consumer group stands in a queue, while a batch is written."""

from collections.abc import Sequence
from dataclasses import dataclass

from delivery.groups import GroupFacts
from store import readers
from store.database import Row
from store.topics import RETRY_PREFIX, TopicFacts

# Entries that one receive looks at in each queue, when a filter passes over most or an ordered group parks them.
MAX_LOOKED_AT = 256


def locks_of(group: GroupFacts, topic: TopicFacts, queues: Sequence[tuple[int, int]]) -> set[int]:
    """The locks that make a transaction the only one that moves the group in these queues of the topic and of retries.

    A topic has one for all its queues. One of retries has one per queue: each queue belongs to another topic, and
    receives from two topics need not take turns.
    """
    if topic.name.startswith(RETRY_PREFIX):
        return readers.locks(group.id, queues)
    retries = [queue for queue in queues if queue[0] != topic.id]
    return {readers.topic_lock(group.id, topic.id), *readers.locks(group.id, retries)}


@dataclass(slots=True)
class Position:
    """Where a group stands in a queue while a batch is written."""

    next_offset: int
    max_offset: int
    move: int
    moved: bool

    @classmethod
    def of(cls, row: Row, group: GroupFacts) -> "Position":
        """From the ledger; a group that begins to read the topic starts where `start_at` says, and keeps to that.

        A queue that appears later, as the topic grows, is read from its first entry.
        """
        if row.next_offset is None:
            latest = group.start_at == "latest" and not row.begun
            return cls(row.max_offset if latest else row.min_offset, row.max_offset, 0, latest)
        return cls(max(row.next_offset, row.min_offset), row.max_offset, row.move, False)

    @property
    def lag(self) -> int:
        return self.max_offset - self.next_offset

    def pass_over(self, offset: int) -> None:
        self.next_offset = offset + 1
        self.moved = True
