"""What waits for a pipelined batch: a bounded queue, ends before the others."""

import math
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from django.conf import settings

from store.commit.operation import Operation
from store.commit.pipelined import MAX_BATCH_BYTES
from store.db.outcomes import Failed
from store.errors import CellAway, SystemBusy
from store.process import runtime
from store.process.budget import RESERVED_PART

# A second batch under way costs some 0.5 ms of CPU before its first request: at 64 callers 146 µs of PostgreSQL's CPU
# per transaction with this, 179 with one batch at a time, 161 with half of it.
WORTH = 32
# A batch is sent as soon as the queue holds half of the recent concurrency (waiting and in flight), MOST_WAITED
# operations or EARLY_BYTES by `accept.size_of`: two halves take turns in this process and PostgreSQL. With three
# quarters the second half of 64 callers was never enough, and left when the event loop had nothing else to do: 13,280
# sends a second instead of 18,632, 5,966 transactions instead of 6,657, and 19,859 sends over 128 connections instead
# of 20,966. Batches of 16 messages, 64 callers: 115,600 messages a second with 192 kB, 88,100 with 256, where the
# process waits while PostgreSQL works and PostgreSQL while the process does.
MOST_WAITED = 128
EARLY_BYTES = 192 * 1024

# A cell that has been asked for so long and has said nothing gets no new work but one operation that tries it.
SILENT_SECONDS = 1.0


def limit() -> int:
    """How many requests may wait before new work is refused."""
    return int(settings.GROUP_COMMIT_MAX_WAITING) - int(settings.GROUP_COMMIT_MAX_WAITING) // RESERVED_PART


def most_wait_seconds() -> float:
    """How long new work may wait to be begun before other new work is refused.

    Of a process that serves 10,000 sends a second 3,000 wait by the default then, and what is refused comes again.
    """
    return int(settings.GROUP_COMMIT_MAX_WAIT_MILLISECONDS) / 1000


def too_many(waiting: int) -> SystemBusy:
    """The refusal of a request while `waiting` others wait."""
    return SystemBusy(f"{waiting} requests wait to be written: nothing was stored, try again in a second.")


def too_long() -> SystemBusy:
    """The refusal of new work while other new work has waited for longer than it may."""
    return SystemBusy(
        f"Other requests wait for {most_wait_seconds():g} s to be written: nothing was stored, try again in a second."
    )


def silent(cell: str) -> CellAway:
    """The refusal of new work for a cell among several that does not answer."""
    return CellAway(
        f"The cell {cell} is away: it has not answered for {SILENT_SECONDS:g} s. Nothing was stored there, and the "
        "topics of other cells go on. Try again in a second."
    )


class Waiting:
    """Operations that no pipelined batch of a cell has taken yet."""

    def __init__(self, cell: str) -> None:
        self._cell = cell
        # From when on the cell is silent, by the monotonic clock, and whether what was asked last got no answer.
        self._silent_from = math.inf
        self._is_away = False
        self._urgent: deque[Operation[Any]] = deque()
        self._ordinary: deque[Operation[Any]] = deque()
        # How many of each: in a plain dictionary, for a Counter looks up a new key in Python.
        self._ordinary_keys: dict[bytes, int] = {}
        # Of both: to ask each for its length took 1 µs of a operation.
        self.count = 0
        self._bytes = 0
        # How many requests there were at a time lately, waiting or under way.
        self._callers = 0
        # What is worth the fixed cost of a batch.
        self._enough = WORTH
        # Read once: Django's settings cost 0.3 µs each time, and all of this is asked about each operation.
        # New work is refused when this number of requests waits: ends have a part of it for themselves.
        self.limit = limit()
        self._urgent_limit = int(settings.GROUP_COMMIT_MAX_WAITING)
        self._most_bytes = int(settings.GROUP_COMMIT_MAX_WAITING_BYTES)
        # What begins behind the next batch would wait here for longer than it may, and none of it would be refused.
        self.most_of_a_batch = int(settings.GROUP_COMMIT_MAX_REQUESTS)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Operation[Any]]:
        yield from self._urgent
        yield from self._ordinary

    @property
    def is_large(self) -> bool:
        """Whether EARLY_BYTES wait: the batch is sent without waiting for more."""
        return self._bytes >= EARLY_BYTES

    @property
    def is_enough(self) -> bool:
        """Whether so much waits that it is worth the fixed cost of a batch."""
        return self.count >= self._enough or self._bytes >= EARLY_BYTES

    @property
    def are_all(self) -> bool:
        """Whether all recent callers wait: as many requests as there were at a time lately, with a lone caller one."""
        return self.count >= self._callers

    def note(self, under_way: int) -> None:
        """A batch has been sent: `under_way` requests are in flight beside the waiting ones."""
        self._callers = max(self.count + under_way, self._callers * 7 // 8)
        self._enough = min(max(WORTH, self._callers // 2), MOST_WAITED)
        self._ask()

    @property
    def _is_silent(self) -> bool:
        """Whether the cell does not answer, and is being tried already."""
        return time.monotonic() >= self._silent_from or (self._is_away and self.count > 0)

    def _ask(self) -> None:
        if self._silent_from == math.inf:
            self._silent_from = time.monotonic() + (0.0 if self._is_away else SILENT_SECONDS)

    def heard(self, outcome: object, *, is_asked: bool) -> None:
        """What was asked has an outcome, an answer of the cell or not; `is_asked`: something else is under way."""
        if not isinstance(outcome, Exception) or isinstance(outcome, Failed):
            self._is_away, self._silent_from = False, math.inf
            if is_asked:
                self._ask()
        elif not is_asked:
            self.given_up()

    def given_up(self) -> None:
        """No answer is awaited any more: the next operation tries the cell."""
        self._is_away, self._silent_from = True, math.inf

    def add(self, operation: Operation[Any]) -> None:
        """Takes an operation in; raises SystemBusy when too much waits, CellAway while its cell is silent."""
        key, size, is_urgent, keys = operation.key, operation.size, operation.URGENT, self._ordinary_keys
        if self.count >= (self._urgent_limit if is_urgent else self.limit):
            raise too_many(self.count)
        if runtime.several and not is_urgent and self._is_silent:
            raise silent(self._cell)
        if self._bytes + size > self._most_bytes and self._bytes:
            raise SystemBusy(f"{self._bytes} bytes wait to be written: nothing was stored, try again in a second.")
        # An end must not overtake the half it ends while that is still waiting here.
        if is_urgent and key not in keys:
            self._urgent.append(operation)
        else:
            self._ordinary.append(operation)
            keys[key] = keys.get(key, 0) + 1
        self.count += 1
        self._bytes += size

    def take(self) -> list[Operation[Any]]:
        """The requests of the next batch; those that would overtake an earlier one are answered None instead."""
        taken: list[Operation[Any]] = []
        keys: set[bytes] = set()
        size = self._take_from(self._urgent, taken, keys, 0)
        size = self._take_from(self._ordinary, taken, keys, size)
        self._bytes -= size
        return taken

    def _take_from(
        self, waiting: deque[Operation[Any]], taken: list[Operation[Any]], keys: set[bytes], size: int
    ) -> int:
        """One id comes once in a batch: the second would fail it, and could not see the first."""
        left: list[Operation[Any]] = []
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
