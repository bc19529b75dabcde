"""Operations that wait for the stepwise writer, each with its caller."""

import asyncio
from collections.abc import Sequence
from typing import Any

from store.commit.operation import Note, Operation


class Pending:
    """An operation that waits to be written stepwise."""

    __slots__ = ("future", "holders", "note", "operation", "submitted_at")

    def __init__(self, operation: Operation[Any], note: Note | None) -> None:
        self.operation = operation
        self.note = note
        # By the clock of the event loop.
        self.submitted_at = asyncio.get_running_loop().time()
        # The sessions whose lock an attempt has waited for, as far as that was found out.
        self.holders = ""
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def resolve(self, problem: Exception | None = None) -> None:
        """Answers the waiter, unless it has gone away."""
        if self.future.done():
            return
        problem = problem or self.operation.refusal
        if problem is None:
            self.future.set_result(self.operation.result)
        else:
            self.future.set_exception(problem)


def resolve(pending: Sequence[Pending], problem: Exception | None = None) -> None:
    """Answers the callers of these operations: they are durable or refused now, or met a problem together."""
    for one in pending:
        one.resolve(problem)
