"""How an operation is written: it is completed, then goes into a pipelined batch, or is written stepwise."""

import asyncio
from collections import defaultdict
from typing import Any

from store.commit.operation import Note, Operation, Pipelined, Result, Settled
from store.commit.pipelined_writer import PipelinedWriter
from store.commit.stepwise import StepwiseWriter
from store.commit.waiting import Waiting
from store.errors import Refusal
from store.process import runtime


class Writers:
    """The pipelined and the stepwise writers of one process for one cell, by lane."""

    def __init__(self) -> None:
        home = runtime.here()
        self.pipelined: defaultdict[str, PipelinedWriter] = defaultdict(lambda: PipelinedWriter(home))
        self.stepwise: defaultdict[str, StepwiseWriter] = defaultdict(StepwiseWriter)
        # A lock of an ordered operation that waits for pipelined batches, before it is written stepwise.
        self.following: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def close(self) -> None:
        """Writes waiting operations and closes the connections; stepwise writers last, because they write what batches
        leave out.
        """
        for pipelined in list(self.pipelined.values()):
            await pipelined.close()
        for stepwise in list(self.stepwise.values()):
            await stepwise.close()


async def run(operation: Operation[Result], note: Note | None = None) -> Result:
    """Completes an operation and writes it. Returns its result after the commit.

    The audit row of a `note` is committed with the operation, or with its refusal. Raises the operation's refusal;
    SystemBusy when too much waits or the database is away (nothing was stored); OutcomeUnknown when the connection
    broke during the commit.
    """
    if not operation.ready():
        await operation.complete()
    return await write(operation, note)


async def write(operation: Operation[Result], note: Note | None = None) -> Result:
    """Writes an operation like `run`; the operation is already completed."""
    if operation.result is not None:
        return operation.result  # the operation had nothing to write
    # Since `ready`, an earlier operation may have begun to be written stepwise: this operation must follow it.
    if note is None and isinstance(operation, Pipelined) and operation.is_plain and not operation.overtakes:
        hand_in(operation)
        await operation.future
    elif operation.ordered:
        with operation.detour():
            await _follow(operation)
            return await finish(operation, note)
    return await finish(operation, note) if operation.result is None else operation.result


async def _follow(operation: Operation[Any]) -> None:
    """Waits until all earlier ordered operations of pipelined batches are written or left out. Calls take turns."""
    writers = runtime.part_of(operation.cell, Writers)
    async with writers.following[operation.LANE]:
        earlier = writers.pipelined[operation.LANE].unanswered()
        before = [one.future for one in earlier if one.ordered and not one.is_done]
        # Without the sleep, the operation would overtake an operation that was left out in this turn of the event loop:
        # the caller of that operation hands it to the stepwise writer in the next turn.
        await (asyncio.wait(before) if before else asyncio.sleep(0))


async def finish(operation: Operation[Result], note: Note | None = None) -> Result:
    """Writes a completed operation stepwise, because it was left out of its batch or is never pipelined."""
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


def hand_in(operation: Pipelined[Any], settled: Settled | None = None, *, at_once: bool = False) -> None:
    """Calls `PipelinedWriter.hand_in` of the writer of the operation's cell and lane."""
    runtime.part_of(operation.cell, Writers).pipelined[operation.LANE].hand_in(operation, settled, at_once=at_once)


def waiting() -> Waiting:
    """The sends, half messages and ends of cell 0 that no batch has taken yet."""
    return runtime.control(Writers).pipelined[Operation.LANE].waiting
