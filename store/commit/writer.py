"""How an operation is written: completed, handed to the pipelined writer, and stepwise where that left it out."""

import asyncio
from collections import defaultdict
from typing import Any

from store.commit.operation import Note, Operation, Result, Settled
from store.commit.pipelined_writer import PipelinedWriter
from store.commit.stepwise import StepwiseWriter
from store.commit.waiting import Waiting
from store.errors import Refusal
from store.process import runtime


class Writers:
    """The writers of one process for one cell, by lane: those of pipelined batches, and the stepwise ones."""

    def __init__(self) -> None:
        home = runtime.here()
        self.pipelined: defaultdict[str, PipelinedWriter] = defaultdict(lambda: PipelinedWriter(home))
        self.stepwise: defaultdict[str, StepwiseWriter] = defaultdict(StepwiseWriter)
        # Who holds it waits for what is in pipelined batches before it goes the stepwise way: one after the other.
        self.following: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def close(self) -> None:
        """Writes what waits and closes the connections; the stepwise ones last: they get what is left out meanwhile."""
        for pipelined in list(self.pipelined.values()):
            await pipelined.close()
        for stepwise in list(self.stepwise.values()):
            await stepwise.close()


async def run(operation: Operation[Result], note: Note | None = None) -> Result:
    """Completes an operation, has it written and gives its result, after the commit.

    What a `note` writes is committed with the operation, or with its refusal. Raises the refusal that the operation
    decided on; SystemBusy when too much waits or the database is away (nothing was stored); OutcomeUnknown when the
    connection broke during the commit.
    """
    if not operation.ready():
        await operation.complete()
    return await write(operation, note)


async def write(operation: Operation[Result], note: Note | None = None) -> Result:
    """Has an operation written that is complete: as `run`."""
    if operation.result is not None:
        return operation.result  # there was nothing to write
    # An earlier one may have gone the stepwise way since it was made ready: it has to come behind that.
    if note is None and operation.is_plain and not operation.overtakes:
        hand_in(operation)
        if (result := await operation.future) is not None:
            return result
    elif operation.ordered:
        with operation.detour():
            await _follow(operation)
            return await finish(operation, note)
    return await finish(operation, note)


async def _follow(operation: Operation[Any]) -> None:
    """Returns once what keeps an order, and waits for a batch or is in one, is written or left out: calls in turn."""
    writers = runtime.part_of(operation.cell, Writers)
    async with writers.following[operation.LANE]:
        earlier = writers.pipelined[operation.LANE].unanswered()
        if before := [one.future for one in earlier if one.ordered and not one.is_done]:
            await asyncio.wait(before)


async def finish(operation: Operation[Result], note: Note | None = None) -> Result:
    """Has an operation written stepwise that is complete, and not written: as `run`."""
    for _ in runtime.cells():
        try:
            with operation.detour():
                return await _write_stepwise(operation, note)
        except Refusal as refusal:
            if not await operation.renew(refusal):
                raise
    return await _write_stepwise(operation, note)


async def _write_stepwise(operation: Operation[Result], note: Note | None) -> Result:
    with runtime.entered(operation.cell):
        return await runtime.part(Writers).stepwise[operation.LANE].write(operation, note)


def hand_in(operation: Operation[Any], settled: Settled | None = None, *, at_once: bool = False) -> None:
    """Has an operation written in a pipelined batch of this process; as `PipelinedWriter.hand_in`."""
    runtime.part_of(operation.cell, Writers).pipelined[operation.LANE].hand_in(operation, settled, at_once=at_once)


def waiting() -> Waiting:
    """The new messages, the half messages and the ends in the control's own cell that no batch has taken yet."""
    return runtime.control(Writers).pipelined[Operation.LANE].waiting
