"""The time limit of the batches under way: one timer serves all batches of a writer."""

import asyncio
from collections import deque
from collections.abc import Callable

from store.commit.pipelined import PipelinedBatch


class Overdue:
    """Calls `give_up` when the oldest batch in `under_way` has waited `seconds` for its answer."""

    def __init__(self, under_way: deque[PipelinedBatch], seconds: float, give_up: Callable[[], None]) -> None:
        self._under_way = under_way
        self._seconds = seconds
        self._give_up = give_up
        self._timer: asyncio.TimerHandle | None = None

    def sent(self, batch: PipelinedBatch) -> None:
        """Adds a batch that is being sent."""
        batch.sent_at = asyncio.get_running_loop().time()
        self._under_way.append(batch)
        if self._timer is None:
            self._look()

    def _look(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        if not self._under_way:
            return
        ends = self._under_way[0].sent_at + self._seconds
        if loop.time() < ends:
            self._timer = loop.call_at(ends, self._look)
        else:
            self._give_up()
