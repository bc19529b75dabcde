"""The program's own answers to checks, for tasks."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial

from mqbroker_client.checks import BatchCheck
from mqbroker_client.halves import HalfMessage
from mqbroker_client.states import LocalTransactionState, Outcome, in_thread, outcome_awaited

#: A coroutine function, or a plain one, which runs in a thread because it may block.
AsyncCheck = Callable[[HalfMessage], Awaitable[LocalTransactionState | None] | LocalTransactionState | None]


async def outcomes_of(
    check: AsyncCheck, halves: Sequence[HalfMessage]
) -> AsyncGenerator[tuple[HalfMessage, Outcome], None]:
    """Each half with its outcome, one after the other where the check takes one at a time."""
    if isinstance(check, BatchCheck):
        for found in zip(halves, await asyncio.to_thread(check.answer, halves), strict=True):
            yield found
        return
    for half in halves:
        yield half, await _outcome(check, half)


async def _outcome(check: AsyncCheck, half: HalfMessage) -> Outcome:
    def run() -> object:
        return in_thread(partial(check, half))

    async def awaited() -> object:
        found = check(half)
        return await found if isinstance(found, Awaitable) else found

    return await outcome_awaited(awaited if asyncio.iscoroutinefunction(check) else run)
