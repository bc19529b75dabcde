"""The program's functions that answer checks, for tasks."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial

from mqbroker_client.aio.hooks import AsyncHook, entered
from mqbroker_client.core.checks import BatchCheck
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.hooks import checked
from mqbroker_client.core.states import LocalTransactionState, Outcome, in_thread, outcome_awaited

#: A coroutine function, or a plain function, which runs in a thread because it may block.
AsyncCheck = Callable[[HalfMessage], Awaitable[LocalTransactionState | None] | LocalTransactionState | None]


async def outcomes_of(
    check: AsyncCheck, halves: Sequence[HalfMessage], hooks: Sequence[AsyncHook]
) -> AsyncGenerator[tuple[HalfMessage, Outcome], None]:
    """Yields each half message with its outcome; a check that takes one half message is called for each in turn.

    If a hook raises an error before the check of one half message, the error counts as the check's error. For a check
    of several half messages at once, the error is raised.
    """
    if not isinstance(check, BatchCheck):
        for half in halves:
            yield half, await outcome_awaited(partial(_checked, check, half, hooks))
        return
    contexts = [checked(half) for half in halves]
    async with entered(hooks, *contexts):
        outcomes = await asyncio.to_thread(check.answer, halves)
        for context, outcome in zip(contexts, outcomes, strict=True):
            context.result = outcome.state
    for found in zip(halves, outcomes, strict=True):
        yield found


async def _checked(check: AsyncCheck, half: HalfMessage, hooks: Sequence[AsyncHook]) -> object:
    def run() -> object:
        return in_thread(partial(check, half))

    context = checked(half)
    async with entered(hooks, context):
        found = check(half) if asyncio.iscoroutinefunction(check) else await asyncio.to_thread(run)
        context.result = result = await found if isinstance(found, Awaitable) else found
    return result
