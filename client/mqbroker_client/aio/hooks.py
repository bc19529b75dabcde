"""Hooks around the calls and handlers of tasks: hooks for threads, and asynchronous context managers."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager

from mqbroker_client.core import hooks
from mqbroker_client.core.hooks import HookContext, log

#: `mqbroker_client.core.hooks.Hook` for tasks: a hook that may also return an asynchronous context manager.
AsyncHook = Callable[[HookContext], "AbstractContextManager[object] | AbstractAsyncContextManager[object] | None"]
Around = AbstractContextManager[object] | AbstractAsyncContextManager[object]


@asynccontextmanager
async def entered(given: Sequence[AsyncHook], *contexts: HookContext) -> AsyncIterator[None]:
    """Enters each hook, in order, around the block. An error of the block is raised, even if a hook suppresses it."""
    begun: list[Around] = []
    try:
        for context in contexts:
            for hook in given:
                if (around := hook(context)) is not None:
                    if isinstance(around, AbstractAsyncContextManager):
                        await around.__aenter__()
                    else:
                        around.__enter__()
                    begun.append(around)
        yield
    except BaseException as error:
        await _leave(begun, error)
        raise
    await _leave(begun, None)


async def _leave(begun: Sequence[Around], error: BaseException | None) -> None:
    for around in reversed(begun):
        if not isinstance(around, AbstractAsyncContextManager):
            hooks.leave([around], error)
            continue
        try:
            await around.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)
        except Exception as problem:  # noqa: BLE001 a hook belongs to the program and may raise anything
            if problem is not error:
                log.warning("a hook failed behind what it is around: %r", problem, exc_info=problem)
