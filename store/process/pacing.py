"""Pacing: work on large bodies goes in steps, one at a time in a process, so that small requests come in between."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Generator, Iterator
from typing import TypeVar

from store.process import runtime

Result = TypeVar("Result")

# What one step works on: some 0.3 ms to copy, some 1 ms to encode.
STEP_BYTES = 256 * 1024
# Of work that pauses by itself, as much as this is one step.
STEP_SECONDS = 0.001
# After a step that took longer, as on a machine under other load, small requests get no more than this.
MAX_PAUSE_SECONDS = 0.02


class Pace:
    """The turns of a process's large work."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()


@contextlib.asynccontextmanager
async def step() -> AsyncIterator[None]:
    """The block is one step: it waits for the step before it, and the next one waits as long as this one took.

    A small send passes the event loop some ten times. With all large readers at work in each pass it waited for all of
    them ten times; with pauses most passes meet none of them. The block must not await.
    """
    async with runtime.control(Pace).turn:
        began = time.perf_counter()
        yield
        await asyncio.sleep(min(time.perf_counter() - began, MAX_PAUSE_SECONDS))


async def each(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces, each made in a step but the first: a body of one piece waits for nothing."""
    piece = next(pieces, None)
    while piece is not None:
        yield piece
        async with step():
            piece = next(pieces, None)


async def through(work: Generator[None, None, Result]) -> Result:
    """The result of work that pauses by itself, after less than a millisecond each time."""
    while True:
        async with step():
            until = time.perf_counter() + STEP_SECONDS
            try:
                next(work)
                while time.perf_counter() < until:
                    next(work)
            except StopIteration as end:
                result: Result = end.value
                return result
