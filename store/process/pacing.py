"""Pacing: work on large bodies is done in steps, one at a time per process, so that small requests run in between."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Generator, Iterator
from typing import TypeVar

from store.process import runtime

Result = TypeVar("Result")

# The bytes of one step: some 0.3 ms to copy, some 1 ms to encode.
STEP_BYTES = 256 * 1024
# The time of one step, for work that pauses by itself.
STEP_SECONDS = 0.001
# The longest pause after a step; on a machine under other load a step may take longer than this.
MAX_PAUSE_SECONDS = 0.02


class Pace:
    """The lock by which the large requests of a process take turns."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()


@contextlib.asynccontextmanager
async def step() -> AsyncIterator[None]:
    """A block that is one step of work.

    A step begins after the previous step, and the next step waits for as long as this step took. A small send needs
    about ten turns of the event loop. Without pauses every large reader would work in each of these turns, and the send
    would wait for all readers ten times; with pauses most turns have no reader's work. The block must not await.
    """
    async with runtime.control(Pace).turn:
        began = time.perf_counter()
        yield
        await asyncio.sleep(min(time.perf_counter() - began, MAX_PAUSE_SECONDS))


async def each(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces. Each piece except the first is made in a step, so a body of one piece does not wait."""
    piece = next(pieces, None)
    while piece is not None:
        yield piece
        async with step():
            piece = next(pieces, None)


async def through(work: Generator[None, None, Result]) -> Result:
    """The result of a generator that works in steps, and pauses at least once a millisecond."""
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
