"""Finds the cell of a message or a transaction by its id, and of the entries of a topic."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from store.db import connections
from store.db.statements import RowType, Statement
from store.errors import MessageIllegal, SystemBusy
from store.messages import ids
from store.naming import topics
from store.naming.topics import TopicFacts
from store.process import runtime
from store.process.runtime import Runtime
from store.rows import Copy

Result = TypeVar("Result")

FIND_COPIES = Statement(__file__, "find_copies", Copy)


def of_topic(topic: TopicFacts) -> list[int]:
    """The cells that hold entries of a topic: one cell, or all cells for a topic of the broker's own."""
    if not topics.is_system(topic.name):
        return [topic.cell_id]
    return [cell.cell for cell in runtime.cells()]


def of_queues(topic: TopicFacts, named: str | None = None) -> int:
    """The cell whose queues of a topic are read by their offsets; a request may name it in `named`.

    Raises MessageIllegal if the named cell has no queue of the topic, and if no cell is named for a topic of the
    broker's own while several cells have queues of the topic.
    """
    holding = {runtime.of(cell).name: cell for cell in of_topic(topic)}
    if named is None:
        if len(holding) > 1:
            raise MessageIllegal(
                f"The topic {topic.name} has queues in {len(holding)} cells: choose a cell with the parameter "
                f"cell, one of {', '.join(holding)}."
            )
        return next(iter(holding.values()))
    if named not in holding:
        raise MessageIllegal(
            f"The cell {named[:60]!r} has no queues of the topic {topic.name}: its queues are in {', '.join(holding)}."
        )
    return holding[named]


def of_message(message_id: uuid.UUID) -> contextlib.AbstractAsyncContextManager[None]:
    """A context manager: the code of its block works for the cell that has the message. For arguments and errors see
    `of_id`.
    """
    return of_id(message_id, FIND_COPIES, {"message_id": message_id, "max_copies": 1})


@contextlib.asynccontextmanager
async def of_id(named: uuid.UUID, probe: Statement[RowType], parameters: Mapping[str, object]) -> AsyncIterator[None]:
    """A block that works for the cell in which the statement `probe` finds rows for an id.

    The cell that the id names is asked first, then all others at once. If no cell has rows, the block works for the
    first one; but if a cell is away, SystemBusy is raised, because this cell may have rows. If there is only one cell,
    it is not asked.
    """
    served = runtime.current().cells
    first = served.get(ids.cell_of(named)) or runtime.current()
    if not (others := [cell for cell in served.values() if cell is not first]):
        yield
        return
    with (await _holder(first, others, probe, parameters)).entered():
        yield


async def _holder(
    first: Runtime, others: Sequence[Runtime], probe: Statement[RowType], parameters: Mapping[str, object]
) -> Runtime:
    away: SystemBusy | None = None
    for asked in ([first], others):
        ended = await asyncio.gather(*(_probe(cell, probe, parameters) for cell in asked), return_exceptions=True)
        for cell, found in zip(asked, ended, strict=True):
            if isinstance(found, SystemBusy):
                away = found
            elif isinstance(found, BaseException):
                raise found
            elif found:
                return cell
    if away is not None:
        raise away
    return first


async def _probe(cell: Runtime, probe: Statement[RowType], parameters: Mapping[str, object]) -> bool:
    """Whether the cell has rows that are not copies. Rows of a topic that has left the cell are copies."""
    with cell.entered():
        rows = await connections.read(probe, parameters)
    return any(getattr(row, "topic_id", None) not in cell.departed.topics for row in rows)


async def in_turn(
    cells: Iterable[Runtime], work: Callable[[], Awaitable[Result]]
) -> AsyncGenerator[tuple[Runtime, Result], None]:
    """The results of `work` in these cells, one after another; without cells that are away.

    Raises SystemBusy if all cells are away.
    """
    refusals: list[SystemBusy] = []
    answered = False
    for cell in cells:
        try:
            with cell.entered():
                result = await work()
        except SystemBusy as refusal:
            refusals.append(refusal)
            continue
        answered = True
        yield cell, result
    if refusals and not answered:
        raise refusals[0]
