"""The operations that wait for a pipelined batch: a bounded queue with ends before the others."""

import math
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from django.conf import settings

from store.commit.operation import Pipelined
from store.commit.pipelined import MAX_BATCH_BYTES
from store.db.outcomes import Failed
from store.errors import CellAway, SystemBusy
from store.process import runtime
from store.process.budget import RESERVED_PART

# The fewest operations of a second batch under way, whose fixed cost is some 0.5 ms of CPU. At 64 callers a transaction
# takes 146 µs of PostgreSQL's CPU with at least 32 operations, 161 µs with 16, and 179 µs with one batch at a time.
WORTH = 32
# A batch is sent as soon as the queue holds half of the recent concurrency (waiting and in flight), MOST_WAITED
# operations or EARLY_BYTES by `accept.size_of`: then one half of the callers is handled by this process while
# PostgreSQL executes the other half. With three quarters in place of a half, the second batch of 64 callers was never
# full and left only when the event loop was idle: 13,280 sends a second instead of 18,632, 5,966 transactions instead
# of 6,657, and 19,859 sends over 128 connections instead of 20,966. Batches of 16 messages, 64 callers: 115,600
# messages a second with 192 kB, 88,100 with 256 kB, where process and PostgreSQL wait for each other.
MOST_WAITED = 128
EARLY_BYTES = 192 * 1024

# A cell that has not answered for this time is silent: it gets one operation as a trial, and other new work is refused.
SILENT_SECONDS = 1.0


def limit() -> int:
    """The number of waiting requests at which new work is refused."""
    return int(settings.GROUP_COMMIT_MAX_WAITING) - int(settings.GROUP_COMMIT_MAX_WAITING) // RESERVED_PART


def most_wait_seconds() -> float:
    """The seconds that new work may wait before it begins. If the oldest request has waited longer, new work is
    refused.

    With the default, a process that serves 10,000 sends a second then has 3,000 waiting requests. Clients repeat
    refused requests.
    """
    return int(settings.GROUP_COMMIT_MAX_WAIT_MILLISECONDS) / 1000


def too_many(waiting: int) -> SystemBusy:
    """The refusal of a request while `waiting` other requests wait."""
    return SystemBusy(f"{waiting} requests already wait to be written: nothing was stored, try again in a second.")


def too_long() -> SystemBusy:
    """The refusal of new work while earlier new work has waited longer than `most_wait_seconds`."""
    return SystemBusy(
        f"Other requests have waited for {most_wait_seconds():g} s to be written: nothing was stored, try "
        "again in a second."
    )


def silent(cell: str) -> CellAway:
    """The refusal of new work for a cell that does not answer, if the installation has several cells."""
    return CellAway(
        f"The cell {cell} is away: it has not answered for {SILENT_SECONDS:g} s. Nothing was stored there; "
        "topics of other cells can still be used. Try again in a second."
    )


class Waiting:
    """Operations that are not yet in a pipelined batch of their cell."""

    def __init__(self, cell: str) -> None:
        self._cell = cell
        # The time, by the monotonic clock, at which the cell became silent; and whether the last batch got no answer.
        self._silent_from = math.inf
        self._is_away = False
        self._urgent: deque[Pipelined[Any]] = deque()
        self._ordinary: deque[Pipelined[Any]] = deque()
        # Operations of each key. A plain dictionary, because a Counter looks up a new key in Python code.
        self._ordinary_keys: dict[bytes, int] = {}
        # The number of operations in both deques, because asking each deque for its length took 1 µs per operation.
        self.count = 0
        self._bytes = 0
        # Recent concurrency: the number of requests waiting or under way.
        self._callers = 0
        # The number of operations that makes the fixed cost of a batch worthwhile.
        self._enough = WORTH
        # Settings are read once: each read costs 0.3 µs, and every operation needs these. When `limit` requests wait,
        # new work is refused; ends have room up to `_urgent_limit`.
        self.limit = limit()
        self._urgent_limit = int(settings.GROUP_COMMIT_MAX_WAITING)
        self._most_bytes = int(settings.GROUP_COMMIT_MAX_WAITING_BYTES)
        # The most operations of a batch. While it is full, new work waits before its begin, where it can still be
        # refused.
        self.most_of_a_batch = int(settings.GROUP_COMMIT_MAX_REQUESTS)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Pipelined[Any]]:
        yield from self._urgent
        yield from self._ordinary

    @property
    def is_large(self) -> bool:
        """Whether EARLY_BYTES wait: the batch is sent without waiting for more."""
        return self._bytes >= EARLY_BYTES

    @property
    def is_enough(self) -> bool:
        """Whether the waiting operations or bytes are enough to make the fixed cost of a batch worthwhile."""
        return self.count >= self._enough or self._bytes >= EARLY_BYTES

    @property
    def are_all(self) -> bool:
        """Whether as many requests wait as there were callers recently, so that no further request is expected."""
        return self.count >= self._callers

    def note(self, under_way: int) -> None:
        """Notes that a batch has been sent: `under_way` requests are now in sent batches, besides the waiting ones."""
        self._callers = max(self.count + under_way, self._callers * 7 // 8)
        self._enough = min(max(WORTH, self._callers // 2), MOST_WAITED)
        self._ask()

    @property
    def _is_silent(self) -> bool:
        """Whether the cell does not answer and another operation already tests it."""
        return time.monotonic() >= self._silent_from or (self._is_away and self.count > 0)

    def _ask(self) -> None:
        if self._silent_from == math.inf:
            self._silent_from = time.monotonic() + (0.0 if self._is_away else SILENT_SECONDS)

    def heard(self, outcome: object, *, is_asked: bool) -> None:
        """Notes whether the cell has answered a batch.

        `is_asked`: another batch has been sent and is not answered yet.
        """
        if not isinstance(outcome, Exception) or isinstance(outcome, Failed):
            self._is_away, self._silent_from = False, math.inf
            if is_asked:
                self._ask()
        elif not is_asked:
            self.given_up()

    def given_up(self) -> None:
        """Notes that no answer is expected any more: the next operation tests the cell."""
        self._is_away, self._silent_from = True, math.inf

    def add(self, operation: Pipelined[Any]) -> None:
        """Adds an operation. Raises SystemBusy when too much waits, CellAway while its cell is silent."""
        key, size, is_urgent, keys = operation.key, operation.size, operation.URGENT, self._ordinary_keys
        if self.count >= (self._urgent_limit if is_urgent else self.limit):
            raise too_many(self.count)
        if runtime.placement.refuses_silent and not is_urgent and self._is_silent:
            raise silent(self._cell)
        if self._bytes + size > self._most_bytes and self._bytes:
            raise SystemBusy(
                f"Requests that wait to be written fill {self._bytes} bytes, the limit: nothing was stored, try "
                "again in a second."
            )
        # An end must not overtake its half message, which may still wait here.
        if is_urgent and key not in keys:
            self._urgent.append(operation)
        else:
            self._ordinary.append(operation)
            keys[key] = keys.get(key, 0) + 1
        self.count += 1
        self._bytes += size

    def take(self) -> list[Pipelined[Any]]:
        """Removes and returns the operations of the next batch, without any that would overtake an earlier one."""
        taken: list[Pipelined[Any]] = []
        keys: set[bytes] = set()
        size = self._take_from(self._urgent, taken, keys, 0)
        size = self._take_from(self._ordinary, taken, keys, size)
        self._bytes -= size
        return taken

    def _take_from(
        self, waiting: deque[Pipelined[Any]], taken: list[Pipelined[Any]], keys: set[bytes], size: int
    ) -> int:
        """Moves operations to `taken`, each id at most once: a second operation with an id could not see the rows of
        the first.
        """
        left: list[Pipelined[Any]] = []
        most = self.most_of_a_batch
        while waiting and len(taken) < most and (not taken or size + waiting[0].size <= MAX_BATCH_BYTES):
            operation = waiting.popleft()
            ids = operation.ids
            if not keys.isdisjoint(ids):
                left.append(operation)
                continue
            self.count -= 1
            if waiting is self._ordinary:
                self._forget_key(operation.key)
            if operation.ordered and operation.overtakes:
                self._bytes -= operation.size
                operation.resolve()
                continue
            keys.update(ids)
            size += operation.size
            taken.append(operation)
        if left:
            waiting.extendleft(reversed(left))
        return size

    def _forget_key(self, key: bytes) -> None:
        left = self._ordinary_keys.pop(key) - 1
        if left:
            self._ordinary_keys[key] = left
