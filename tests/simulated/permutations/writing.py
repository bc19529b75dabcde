"""The writers' batches on the stage: pipelined ones a statement at a time, stepwise ones as they are.

`pipelined` sends what `PipelinedBatch` would, `stepwise` does what `StepwiseWriter` does with one batch, and `written`
follows the one with the other. What the writers do when the time for a lock is over has no place here.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import psycopg

from store.commit.attempts import DONE_OVER, MAX_ATTEMPTS_ALONE
from store.commit.batch import Batch
from store.commit.operation import Operation, Pipelined, by_class, write_steps
from store.commit.pipelined import PipelinedBatch
from store.commit.pipelined_writer import MAX_ATTEMPTS
from store.segments import log
from tests.simulated.permutations.stage import StageConnection

Result = TypeVar("Result")


async def pipelined(connection: StageConnection, operations: Sequence[Pipelined[Any]], segment_id: int) -> int | None:
    """One batch of the pipelined writer, for the segment that it believes to be open; returns the one that it found."""
    batch = PipelinedBatch(operations)
    results = {call.statement: await connection.call(call) for call in batch.calls(segment_id)}
    await connection.commit()
    if behind := batch.behind_commit():
        results |= {call.statement: await connection.call(call) for call in behind}
        await connection.commit()
    return batch.settle(results)


async def stepwise(connection: StageConnection, operation: Operation[Any], *, again: bool = False) -> None:
    """One batch of the stepwise writer."""
    operation.result = operation.refusal = operation.before = None
    work = by_class([operation])
    locks = {key for class_, operations in work for key in class_.locks(operations)}
    segment = await log.join(connection, locks, silence_ms=0)
    batch = Batch(connection, *segment, again=again)
    await write_steps(batch, work)
    await batch.write_rows()
    await connection.commit()


async def written(connection: StageConnection, operation: Operation[Result]) -> object:
    """The result of an operation that is complete, or its refusal: pipelined, then stepwise where it was left out."""
    segment_id = connection.segment_id
    if isinstance(operation, Pipelined) and operation.is_plain:
        for _ in range(MAX_ATTEMPTS):
            try:
                found = await pipelined(connection, [operation], segment_id)
            except DONE_OVER:
                await _undo(connection)
                continue
            if operation.result is not None or found in (None, segment_id):
                break
            segment_id = found or segment_id
    for attempt in range(MAX_ATTEMPTS_ALONE) if operation.result is None else ():
        try:
            await stepwise(connection, operation, again=attempt > 0)
            break
        except DONE_OVER:
            await _undo(connection)
    return operation.refusal or operation.result


async def _undo(connection: StageConnection) -> None:
    """Rolls back what is to be done over. Raises OperationalError where the server has ended the session."""
    if connection.closed:
        raise psycopg.OperationalError("the session was ended")
    await connection.rollback()


def kind(answer: object) -> object:
    """A refusal by its code, another answer as it is."""
    return getattr(answer, "code", answer)
