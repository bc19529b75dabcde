"""Operations that wait for the stepwise writer, each with its caller."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from store.commit.operation import Note, Operation
from store.commit.waiting import too_many
from store.errors import SystemBusy

MAX_BATCH_BYTES = 16 * 1024 * 1024


class Pending:
    """An operation that waits to be written stepwise."""

    __slots__ = ("future", "holders", "note", "operation", "submitted_at")

    def __init__(self, operation: Operation[Any], note: Note | None) -> None:
        self.operation = operation
        self.note = note
        # The time by the clock of the event loop.
        self.submitted_at = asyncio.get_running_loop().time()
        # The sessions whose lock an attempt has waited for, as far as `locked.looking` has found them.
        self.holders = ""
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def resolve(self, problem: Exception | None = None) -> None:
        """Answers the caller that waits for the operation, unless it no longer waits."""
        if self.future.done():
            return
        problem = problem or self.operation.refusal
        if problem is None:
            self.future.set_result(self.operation.result)
        else:
            self.future.set_exception(problem)


class PendingQueue:
    """A bounded queue of operations that wait to be written stepwise: ends first, operations of one key in order."""

    def __init__(self) -> None:
        self._urgent: deque[Pending] = deque()
        self._ordinary: deque[Pending] = deque()
        self._ordinary_keys: Counter[bytes] = Counter()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._urgent) + len(self._ordinary)

    def add(self, operation: Operation[Any], note: Note | None) -> Pending:
        """Adds an operation. Raises SystemBusy when too many operations or bytes wait."""
        self._admit(operation.size)
        pending = Pending(operation, note)
        key = operation.key
        # An end must not overtake its half message, which may still wait here.
        if operation.URGENT and not self._ordinary_keys[key]:
            self._urgent.append(pending)
        else:
            self._ordinary.append(pending)
            if key:
                self._ordinary_keys[key] += 1
        self._bytes += operation.size
        return pending

    def add_again(self, pending: Pending) -> None:
        """Adds an urgent operation again after its attempt was postponed."""
        self._bytes += pending.operation.size
        self._urgent.append(pending)

    def take(self) -> list[Pending]:
        """Removes and returns the operations of the next batch, at most one of each key."""
        taken, keys = list[Pending](), set[bytes]()
        self._take_from(self._urgent, taken, keys)
        self._take_from(self._ordinary, taken, keys)
        self._bytes -= sum(pending.operation.size for pending in taken)
        return taken

    def _take_from(self, waiting: deque[Pending], taken: list[Pending], keys: set[bytes]) -> None:
        size, left = sum(pending.operation.size for pending in taken), list[Pending]()
        while waiting and len(taken) < settings.GROUP_COMMIT_MAX_REQUESTS and size < MAX_BATCH_BYTES:
            pending = waiting.popleft()
            key = pending.operation.key
            if key and key in keys:
                left.append(pending)
                continue
            keys.add(key)
            size += pending.operation.size
            taken.append(pending)
            if waiting is self._ordinary and key:
                self._ordinary_keys[key] -= 1
                if not self._ordinary_keys[key]:
                    del self._ordinary_keys[key]
        waiting.extendleft(reversed(left))

    def _admit(self, size: int) -> None:
        if len(self) >= settings.GROUP_COMMIT_MAX_WAITING:
            raise too_many(len(self))
        if self._bytes and self._bytes + size > settings.GROUP_COMMIT_MAX_WAITING_BYTES:
            raise SystemBusy(
                f"Requests that wait to be written fill {self._bytes} bytes, the limit: nothing was stored, try "
                "again in a second."
            )


def resolve(pending: Sequence[Pending], problem: Exception | None = None) -> None:
    """Answers the callers of these operations with their results and refusals, or all of them with `problem`."""
    for one in pending:
        one.resolve(problem)
