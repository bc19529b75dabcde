"""Receipt handles of deliveries whose topic has left the cell of the handle: the topic's new cell settles them."""

from collections.abc import Callable, Sequence, Set
from typing import Self

from delivery.receipts import bundles
from delivery.receipts.handles import Handle, columns
from delivery.rows import SettledHandle
from store.cells import cells
from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db.statements import Statement
from store.process import runtime
from store.process.runtime import Runtime

Settling = Callable[[Set[Handle]], Operation[Set[Handle]]]

ACK_RECEIPTS = Statement(__file__, "ack_receipts", SettledHandle)
LOCK_HANDLES = Statement(__file__, "lock_handles", SettledHandle)


def have_left(cell: int | None, handles: Set[Handle]) -> bool:
    """Whether the topic of any of these deliveries has left the cell."""
    home = runtime.here() if cell is None else runtime.of(cell)
    return any(home.departed.has(one.topic_id, one.queue_id) for one in handles)


def split_from(cell: int) -> list[Runtime]:
    """The runtimes of the cells that were split from a cell, directly or indirectly: its topics may lie there now."""
    found = [one for one in runtime.cells() if one.parent == cell and one.cell != cell]
    return [each for one in found for each in (one, *split_from(one.cell))]


async def settle(cell: int | None, handles: Set[Handle], made: Settling) -> set[Handle]:
    """Settles handles in the cells that were split from their cell; returns the handles that proved a delivery there.

    Raises SystemBusy while one of these cells is away, because the cell that is away may have the other deliveries.
    """
    source = runtime.here().cell if cell is None else cell
    if not split_from(source):
        await cells.learn()
    settled: set[Handle] = set()
    for child in split_from(source):
        if left := handles - settled:
            with child.entered():
                settled |= await writer.run(made(left))
    return settled


async def settled(
    batch: Batch, statement: Statement[SettledHandle], handles: Set[Handle], parameters: dict[str, object]
) -> set[Handle]:
    """The handles of the deliveries that a statement has settled, by their receipts."""
    if not handles:
        return set()
    await bundles.take_apart(batch, handles)
    return await _by_receipt(batch, statement, handles, parameters)


async def acked(batch: Batch, handles: Set[Handle]) -> set[Handle]:
    """The handles whose deliveries a statement has acked."""
    in_bundles = bundles.bundled(handles)
    found = await bundles.ack(batch, in_bundles)
    return found | await _by_receipt(batch, ACK_RECEIPTS, handles - found, {})


async def _by_receipt(
    batch: Batch, statement: Statement[SettledHandle], handles: Set[Handle], parameters: dict[str, object]
) -> set[Handle]:
    """Like `settled`, for deliveries with receipts. Locks the receipts first: the statement's snapshot would
    miss a delivery that another process extends at this moment.
    """
    if not handles:
        return set()
    ordered_handles, wanted = sorted(handles), columns(handles)
    await batch.read(LOCK_HANDLES, wanted)
    rows = await batch.read(statement, parameters | wanted)
    return {ordered_handles[row.number - 1] for row in rows}


class LateAck(Operation[Set[Handle]]):
    """Acks deliveries that another cell handed out before their topic moved to this task's cell."""

    __slots__ = ("handles",)
    LANE = "acks"
    URGENT = True

    def __init__(self, handles: Set[Handle]) -> None:
        super().__init__()
        self.handles = handles

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            one.result = await acked(batch, one.handles)
