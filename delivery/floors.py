"""Floors: below which offset of a queue an ordered group holds nothing any more, as far as this process has seen."""

import time
from collections.abc import Mapping
from typing import NamedTuple

from delivery.positions import Position
from store.batch import Batch

Queue = tuple[int, int]

MAX_REMEMBERED = 20_000
# What other processes did since costs a probe per move, and the ledger forgets moves after days.
MAX_MOVES = 1000
BELIEVED_SECONDS = 3600.0


class Floor(NamedTuple):
    """All places of the group in the queue were at or behind `offset` when it had made so many moves there."""

    offset: int
    move: int
    seen_at: float


NONE = Floor(0, 0, 0.0)


class Floors:
    """The floors that a process remembers. One that is lost costs a longer look."""

    def __init__(self) -> None:
        self._floors: dict[tuple[int, Queue], Floor] = {}

    def of(self, group_id: int, queue: Queue, position: Position) -> Floor:
        """The floor of a queue, or NONE when too much may have happened since it was seen."""
        floor = self._floors.get((group_id, queue), NONE)
        fresh = time.monotonic() - floor.seen_at < BELIEVED_SECONDS
        return floor if fresh and position.move - floor.move <= MAX_MOVES else NONE

    def see(self, batch: Batch, group_id: int, offsets: Mapping[Queue, int], moves: Mapping[Queue, int]) -> None:
        """Remembers floors once the batch is durable: what it deleted comes back when it is not."""
        now = time.monotonic()

        def remember() -> None:
            if len(self._floors) >= MAX_REMEMBERED:
                self._floors.clear()
            for queue, offset in offsets.items():
                self._floors[group_id, queue] = Floor(offset, moves[queue], now)

        batch.after_commit(remember)


floors = Floors()
