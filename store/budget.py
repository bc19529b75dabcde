"""Budgets: how many bytes of one kind a process holds at a time, and who waits or is refused when they are used up."""

import asyncio
from collections import deque
from collections.abc import Callable

# Of a budget, this part is for small takers alone: a few large ones cannot keep them out.
RESERVED_PART = 8
SMALL_BYTES = 64 * 1024


class Budget:
    """Bytes that are held, and a limit for them. The first taker always gets what it asks for."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self.held = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def free(self) -> int:
        """Bytes below the limit."""
        return max(0, self._limit() - self.held)

    def take(self, size: int, already: int = 0) -> bool:
        """Takes `size` bytes for one that holds `already` some; False when the budget is used up."""
        limit = self._limit()
        if size + already > SMALL_BYTES:
            limit -= limit // RESERVED_PART
        if self.held > already and self.held + size > limit:
            return False
        self.held += size
        return True

    def hold(self, size: int) -> None:
        """Counts bytes that are there already, beyond the limit too."""
        self.held += size

    def give_back(self, size: int) -> None:
        """Returns bytes, and lets the next one that waits look again."""
        self.held -= size
        self._wake()

    async def room(self, size: int) -> None:
        """Waits, in the order of coming, until so many bytes are free."""
        while self.held and self.free < size:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            finally:
                if turn in self._waiting:
                    self._waiting.remove(turn)

    def _wake(self) -> None:
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)
        self._waiting.clear()
