"""The budget of answers: message bodies that a process has read but not sent yet.

Reads take turns when it is nearly full.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from typing import Self

from django.conf import settings

from store.errors import SystemBusy
from store.process import runtime
from store.process.budget import RESERVED_PART, SMALL_BYTES

# The bytes that must be free before a read begins: with fewer, each message would need a separate read.
LEAST_PAGE_BYTES = 1024 * 1024
ROOM_SECONDS = 3.0


class Answers:
    """The bytes of bodies that a process holds for answers, by API key.

    1. A read takes a page, which gets smaller as the budget fills; a read waits while less than LEAST_PAGE_BYTES is
       free.
    2. A key holds at most five eighths of the bytes and one message more, so callers that read slowly leave room for
       other keys.
    3. An eighth (RESERVED_PART) is a reserve for pages of SMALL_BYTES, so that reads of small messages do not wait. A
       small answer is written to its socket whole, so its bytes are free again at once.
    4. Waiting reads take turns: one key after another, and the reads of one key in the order of their arrival.
    """

    def __init__(self) -> None:
        limit = int(settings.ANSWERS_IN_FLIGHT_BYTES)
        self._limit = limit
        self._most_of_page = int(settings.MAX_RECEIVE_BYTES)
        self._most_of_message = int(settings.MAX_MESSAGE_BYTES)
        self._reserve = limit // RESERVED_PART
        self._most_of_key = limit * 5 // 8
        # While all answers together hold at most this number of bytes, no read has to wait, whatever its key. In almost
        # all cases only this number is compared.
        self._calm = max(0, min(limit - self._reserve, self._most_of_key) - LEAST_PAGE_BYTES)
        self.held = 0
        self._small = 0
        self._by_key: dict[str, int] = {}
        # The reads that wait, by API key. The first key is served next.
        self._turns: dict[str, deque[asyncio.Future[None]]] = {}

    def room_of(self, key: str) -> int:
        """The bytes that a read of this key may hold now, at most the free bytes."""
        free = self._limit - self.held
        room = min(free // 2, free - self._reserve, self._most_of_key - self._by_key.get(key, 0))
        return min(self._most_of_page, max(room, LEAST_PAGE_BYTES))

    def page_bytes(self, key: str) -> int:
        """The bytes of bodies that a read of this key may fetch now; the last message may exceed them."""
        room = self.room_of(key)
        return room if room == self._most_of_page else max(room - self._most_of_message, min(room, LEAST_PAGE_BYTES))

    @property
    def is_calm(self) -> bool:
        """Whether no read has to wait, whatever its key."""
        return self.held <= self._calm

    def is_short(self, key: str) -> bool:
        """Whether a read of this key has to wait until other answers are sent; False if there are no other answers."""
        if self.is_calm:
            return False
        if self._limit - self._reserve - self.held < LEAST_PAGE_BYTES:
            return True
        of_key = self._by_key.get(key, 0)
        return of_key > 0 and self._most_of_key - of_key < LEAST_PAGE_BYTES

    def change(self, key: str, size: int) -> None:
        """Adds `size`, which may be negative, to the bytes of a key; also beyond the limit: they are in memory."""
        self.held += size
        of_key = self._by_key.get(key, 0) + size
        if of_key:
            self._by_key[key] = of_key
        else:
            self._by_key.pop(key, None)
        if size < 0 and self._turns:
            self._give_turns()

    def change_reserve(self, size: int) -> bool:
        """Takes bytes from the reserve, or returns some if `size` is negative. False if the reserve has too few."""
        if size > 0 and self._small + size > max(self._reserve, SMALL_BYTES):
            return False
        self._small += size
        return True

    async def turn(self, key: str) -> None:
        """Waits for a turn to read with this key, and adds LEAST_PAGE_BYTES to the key's bytes."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.setdefault(key, deque()).append(turn)
        self._give_turns()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(key, turn)
            else:
                self.change(key, -LEAST_PAGE_BYTES)
            raise

    def must_wait(self, key: str) -> bool:
        """Whether a new read of this key has to wait: too few bytes are free for the key, or other reads of it wait."""
        return self.is_short(key) or key in self._turns

    def _leave(self, key: str, turn: asyncio.Future[None]) -> None:
        turns = self._turns.get(key, deque())
        if turn in turns:
            turns.remove(turn)
            if not turns:
                del self._turns[key]

    def _give_turns(self) -> None:
        """Lets waiting reads begin as long as bytes are free: one read of each key that may have bytes, in rounds."""
        given = True
        while given:
            given = False
            for key in [key for key in self._turns if not self.is_short(key)]:
                # The room is checked again, because another key's turn may have taken it.
                given |= not self.is_short(key) and self._give_turn(key)

    def _give_turn(self, key: str) -> bool:
        turns = self._turns.pop(key)
        turn = turns.popleft()
        if turns:
            # The key becomes the last in the order of keys.
            self._turns[key] = turns
        if not turn.done():
            turn.set_result(None)
            self.change(key, LEAST_PAGE_BYTES)
        return True


def answers() -> Answers:
    """The answers of this process."""
    return runtime.control(Answers)


class Hold:
    """The bytes of one answer. They count for a key until the answer is sent, at the end of the block.

    Call `room` before each read, `page` before a page is fetched, `set` with the bytes that were fetched. After the end
    of the block these calls have no effect.
    """

    __slots__ = ("_is_released", "_small", "is_large", "key", "size")

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.size = 0
        # How many bytes the answer has taken from the reserve.
        self._small = 0
        # Whether the next message does not fit into a page of the reserve.
        self.is_large = False
        self._is_released = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.set(0)
        self._is_released = True

    async def until(self, tasks: Collection[asyncio.Task[None]]) -> None:
        """Ends the block once these tasks have ended."""
        with self:
            if tasks:
                await asyncio.wait(tasks)

    @property
    def is_small(self) -> bool:
        """Whether its page comes from the reserve; then even the first message must fit into SMALL_BYTES."""
        return self._small > 0

    @property
    def page_bytes(self) -> int:
        """The bytes of bodies that the answer may fetch now."""
        return self._small or answers().page_bytes(self.key)

    @property
    def is_short(self) -> bool:
        """Whether the answer has to wait for room again, because other answers have taken it."""
        return not self._small and self.size == 0 and answers().is_short(self.key)

    async def room(self, *, may_be_small: bool = False) -> None:
        """Waits until there is room for a page. With `may_be_small` the answer gets a page of the reserve instead of
        waiting.

        Raises SystemBusy after ROOM_SECONDS.
        """
        self.set(0)
        if not answers().must_wait(self.key):
            return
        if may_be_small and not self.is_large and answers().change_reserve(SMALL_BYTES):
            self._small = SMALL_BYTES
            return
        try:
            async with asyncio.timeout(ROOM_SECONDS):
                await answers().turn(self.key)
        except TimeoutError as problem:
            raise SystemBusy(
                f"Answers that callers have not read yet fill {answers().held} bytes of memory: try again in a second."
            ) from problem
        self.size = LEAST_PAGE_BYTES

    def page(self) -> int:
        """Counts the page that may be fetched now, and returns its bytes."""
        page = self.page_bytes
        if not self._small:
            self.set(answers().room_of(self.key))
        return page

    def set(self, size: int) -> None:
        """Replaces the bytes that count for the answer."""
        if self._is_released:
            return
        if self._small:
            answers().change_reserve(-self._small)
            self._small = 0
        if size != self.size:
            before, self.size = self.size, size
            answers().change(self.key, size - before)
