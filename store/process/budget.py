"""Budgets: how many bytes of one kind a process holds at a time; when one is used up, requests wait or are refused."""

import asyncio
from collections import deque
from typing import Self

from django.conf import settings

from store import runtime
from store.errors import SystemBusy

# One part in so many of a budget is for small requests alone: a few large ones cannot keep them out.
RESERVED_PART = 8
SMALL_BYTES = 64 * 1024
# A read waits until so many bytes are free: with less, each message would need a read of its own.
LEAST_PAGE_BYTES = 1024 * 1024
ROOM_SECONDS = 3.0


class Budget:
    """Bytes that are held, and a limit for them. A request always gets its bytes when it is the only one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.held = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def free(self) -> int:
        """Bytes below the limit."""
        return max(0, self._limit - self.held)

    def take(self, size: int, already: int = 0) -> bool:
        """Takes `size` bytes for a request that holds `already` some; False when the budget is used up."""
        limit = self._limit
        if size + already > SMALL_BYTES:
            limit -= limit // RESERVED_PART
        if self.held > already and self.held + size > limit:
            return False
        self.held += size
        return True

    def hold(self, size: int) -> None:
        """Counts bytes that are in memory already, beyond the limit too."""
        self.held += size

    def give_back(self, size: int) -> None:
        """Returns bytes, and wakes the requests that wait for room."""
        self.held -= size
        if self._waiting:
            self._wake()

    async def room(self, size: int) -> None:
        """Waits until so many bytes are free."""
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


class Answers(Budget):
    """The bodies that a process has read for answers and not sent yet."""

    def __init__(self) -> None:
        super().__init__(settings.ANSWERS_IN_FLIGHT_BYTES)


def answers() -> Answers:
    """The answers of this process."""
    return runtime.part(Answers)


def page_bytes() -> int:
    """How many bytes of bodies a read may fetch now: the less is free, the smaller the page."""
    return min(int(settings.MAX_RECEIVE_BYTES), max(answers().free // 2, LEAST_PAGE_BYTES))


def is_short() -> bool:
    """Whether a read has to wait until other answers are sent."""
    return answers().held > 0 and answers().free < LEAST_PAGE_BYTES


class Hold:
    """The bytes of one answer, held until it is sent: to the end of the block. Later calls of `set` have no effect."""

    def __init__(self) -> None:
        self.size = 0
        self._is_released = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.set(0)
        self._is_released = True

    async def room(self) -> None:
        """Waits until there is room for another page.

        Raises SystemBusy after ROOM_SECONDS.
        """
        if not is_short():
            return
        try:
            async with asyncio.timeout(ROOM_SECONDS):
                await answers().room(LEAST_PAGE_BYTES)
        except TimeoutError as problem:
            raise SystemBusy(f"{answers().held} bytes of answers are in flight: try again in a second.") from problem

    def set(self, size: int) -> None:
        """Counts so many bytes for the answer, instead of those counted for it before."""
        if not self._is_released:
            answers().hold(size)
            answers().give_back(self.size)
            self.size = size
