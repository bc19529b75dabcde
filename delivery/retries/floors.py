"""Floors: a process keeps lower bounds of the offsets at which an ordered group may have receipts."""

import time
from collections.abc import Mapping
from typing import NamedTuple

from delivery.groups import QueueProgress
from store.commit.batch import Batch
from store.queues import Queue

# The most floors that a process keeps, one per queue of a group.
MAX_FLOORS = 20_000
# The number of moves after which a floor is not used any more: the scan reads each move since the floor, because a move
# may have gone back, and the ledger drops moves after days.
MAX_MOVES = 1000
FLOOR_BELIEVED_SECONDS = 3600.0


class Floor(NamedTuple):
    """A lower bound of the offsets of a group's receipts in a queue, as of the group's move `move` in the queue."""

    offset: int
    move: int
    # The time at which the bound was read, by time.monotonic().
    seen_at: float


NO_FLOOR = Floor(0, 0, 0.0)


class Floors:
    """Per-process lower bounds of the offsets at which an ordered group may hold a receipt.

    A scan for receipts starts at the floor and skips the dead rows before it. A lost floor costs one longer scan.
    """

    def __init__(self) -> None:
        self._floors: dict[tuple[int, Queue], Floor] = {}

    def of(self, group_id: int, queue: Queue, reached: QueueProgress) -> Floor:
        """The floor of a queue. NO_FLOOR if the kept floor is too old, or too many moves came after it."""
        floor = self._floors.get((group_id, queue), NO_FLOOR)
        is_fresh = time.monotonic() - floor.seen_at < FLOOR_BELIEVED_SECONDS
        return floor if is_fresh and reached.move - floor.move <= MAX_MOVES else NO_FLOOR

    def keep(self, batch: Batch, group_id: int, offsets: Mapping[Queue, int], moves: Mapping[Queue, int]) -> None:
        """Keeps floors after the commit: if the batch failed, the receipts that it should delete would still exist."""
        now = time.monotonic()

        def keep() -> None:
            if len(self._floors) >= MAX_FLOORS:
                self._floors.clear()
            for queue, offset in offsets.items():
                self._floors[group_id, queue] = Floor(offset, moves[queue], now)

        batch.after_commit(keep)
