"""Bounds the calls under way in this process: their number per endpoint, and the bytes that all of them hold."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SMALL_BYTES = 64 * 1024


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


class Allowance:
    """Bytes that may be held at once, first come first served. One per process, used from one event loop.

    Up to SMALL_BYTES wait for nobody: a crowd of large ones at slow servers must not hold up the others. One that is
    larger than all there is waits until nothing else is held, and then has everything.
    """

    def __init__(self, total_bytes: int) -> None:
        self._total = self._free = total_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, size: int, wait_seconds: float) -> AsyncIterator[None]:
        """Waits until so many bytes are free, and holds them.

        Raises TimeoutError when they are not free within `wait_seconds`.
        """
        wanted = 0 if size <= SMALL_BYTES else min(size, self._total)
        async with asyncio.timeout(wait_seconds):
            await self._take(wanted)
        try:
            yield
        finally:
            self._give_back(wanted)

    async def _take(self, wanted: int) -> None:
        if not wanted or (wanted <= self._free and not self._waiting):
            self._free -= wanted
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, waiter))
        try:
            await waiter
        except asyncio.CancelledError:
            # Handed over at the same moment, nobody else would return it; else those behind may fit now.
            self._give_back(0 if waiter.cancelled() else wanted)
            raise

    def _give_back(self, size: int) -> None:
        self._free += size
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._free):
            wanted, waiter = self._waiting.popleft()
            if not waiter.done():
                self._free -= wanted
                waiter.set_result(None)
