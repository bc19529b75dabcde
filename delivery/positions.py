"""Where a consumer group stands in a queue, while a batch is written."""

from dataclasses import dataclass

from delivery.groups import GroupFacts
from store.database import Row


@dataclass(slots=True)
class Position:
    """Where a group stands in a queue while a batch is written."""

    next_offset: int
    max_offset: int
    move: int
    moved: bool

    @classmethod
    def of(cls, row: Row, group: GroupFacts) -> "Position":
        """From the ledger; a group that never read the queue starts where `start_at` says, and keeps to that."""
        if row.next_offset is None:
            latest = group.start_at == "latest"
            return cls(row.max_offset if latest else row.min_offset, row.max_offset, 0, latest)
        return cls(max(row.next_offset, row.min_offset), row.max_offset, row.move, False)

    @property
    def lag(self) -> int:
        return self.max_offset - self.next_offset

    def pass_over(self, offset: int) -> None:
        self.next_offset = offset + 1
        self.moved = True
