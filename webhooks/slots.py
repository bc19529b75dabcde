"""Bounds the calls under way in this process: their number per endpoint, and the bytes that they hold together."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SMALL_BYTES = 64 * 1024


@dataclass(slots=True)
class _EndpointSlots:
    limit: int
    held: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def fill(self) -> None:
        """Gives free slots to waiting calls; the call that has waited longest gets the first."""
        while self.waiting and self.held < self.limit:
            waiter = self.waiting.popleft()
            if not waiter.done():
                self.held += 1
                waiter.set_result(None)

    def give_back(self) -> None:
        self.held -= 1
        self.fill()


class Slots:
    """The slots of each endpoint, first come first served. One object per process, used from one event loop. This is
    not an `asyncio.Semaphore`, because an operator may change the limit while calls are under way: with a lower limit
    these calls finish, and fewer calls begin. The claims of the callers limit the number of waiting calls.
    """

    def __init__(self) -> None:
        self._endpoints: dict[Hashable, _EndpointSlots] = {}

    @asynccontextmanager
    async def hold(self, endpoint_id: Hashable, limit: int) -> AsyncIterator[None]:
        """Waits for a slot of the endpoint, whose limit is now `limit` (at least 1), and holds the slot."""
        slots = self._endpoints.setdefault(endpoint_id, _EndpointSlots(limit))
        slots.limit = max(limit, 1)
        slots.fill()
        try:
            await self._take(slots)
            try:
                yield
            finally:
                slots.give_back()
        finally:
            if not slots.held and not slots.waiting:
                self._endpoints.pop(endpoint_id, None)

    async def _take(self, slots: _EndpointSlots) -> None:
        # If a slot is free, no call is waiting, because a free slot goes to a waiting call at once.
        if slots.held < slots.limit:
            slots.held += 1
            return
        waiter = asyncio.get_running_loop().create_future()
        slots.waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in slots.waiting:
                slots.waiting.remove(waiter)
            elif not waiter.cancelled():
                slots.give_back()  # The slot was given at the moment of the cancellation; only this line returns it.
            raise


class Allowance:
    """Bytes that calls may hold at once, first come first served. One object per process, used from one event loop.

    Calls up to SMALL_BYTES do not wait, so that large calls to slow servers do not delay them. A call above the total
    waits until no other call holds bytes, and then takes the total.
    """

    def __init__(self, total_bytes: int) -> None:
        self._total = self._free = total_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, size: int, wait_seconds: float) -> AsyncIterator[None]:
        """Waits until `size` bytes are free, and holds the bytes.

        Raises TimeoutError when the bytes are not free within `wait_seconds`.
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
            # Returns bytes that were given at the moment of the cancellation; else lets the next waiting call try.
            self._give_back(0 if waiter.cancelled() else wanted)
            raise

    def _give_back(self, size: int) -> None:
        self._free += size
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._free):
            wanted, waiter = self._waiting.popleft()
            if not waiter.done():
                self._free -= wanted
                waiter.set_result(None)
