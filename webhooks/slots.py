"""Bounds how many calls to one endpoint are under way in this process, so that a slow one holds only its own."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Lane:
    limit: int
    held: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def fill(self) -> None:
        """Hand free slots to the longest waiting."""
        while self.waiting and self.held < self.limit:
            waiter = self.waiting.popleft()
            if not waiter.done():
                self.held += 1
                waiter.set_result(None)

    def give_back(self) -> None:
        self.held -= 1
        self.fill()


class Slots:
    """Slots of each endpoint, first come first served. One per process, used from one event loop.

    Not `asyncio.Semaphore`: the limit is the operator's to change while calls are under way; a lower one lets those
    end and admits fewer. Who waits is bounded by what the caller has claimed.
    """

    def __init__(self) -> None:
        self._lanes: dict[Hashable, _Lane] = {}

    @asynccontextmanager
    async def hold(self, endpoint_id: Hashable, limit: int) -> AsyncIterator[None]:
        """Wait for a slot of the endpoint, whose limit is now `limit` (at least 1), and hold it."""
        lane = self._lanes.setdefault(endpoint_id, _Lane(limit))
        lane.limit = max(limit, 1)
        lane.fill()
        try:
            await self._take(lane)
            try:
                yield
            finally:
                lane.give_back()
        finally:
            if not lane.held and not lane.waiting:
                self._lanes.pop(endpoint_id, None)

    async def _take(self, lane: _Lane) -> None:
        if lane.held < lane.limit:  # Then nobody waits: a free slot is handed over the moment it is given back.
            lane.held += 1
            return
        waiter = asyncio.get_running_loop().create_future()
        lane.waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in lane.waiting:
                lane.waiting.remove(waiter)
            elif not waiter.cancelled():
                lane.give_back()  # The slot was handed over at the same moment; nobody else would return it.
            raise
