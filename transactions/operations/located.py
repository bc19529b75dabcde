"""Operations on a transaction, given its id: the cell in the id is asked first, then the other cells."""

import uuid
from typing import TypeVar

from store.cells import cells
from store.commit.operation import Pipelined
from store.db import routing
from store.db.routing import Known
from store.errors import Refusal, SystemBusy, TopicMoved
from store.messages import ids
from store.naming import topics
from store.naming.topics import TopicFacts
from store.process import runtime
from store.process.runtime import CONTROL
from transactions.errors import NotDiscarded, TransactionNotFound

Result = TypeVar("Result")

# A number below every version of the map.
UNKNOWN_VERSION = -1
MAP_CHANGED = (
    "The broker's map from topics to cells changed during the search for the transaction: try again in a second."
)


class OfTransaction(Pipelined[Result]):
    """An operation on one transaction, which lies in one cell.

    An id that the broker made names the cell; an id that a caller chose does not. If no cell has the transaction and a
    cell is away, the answer is the refusal of that cell, because it may have the transaction. Of these operations only
    an end can be plain, so that a pipelined batch may write it.
    """

    __slots__ = ("away", "known_version", "left_cells", "topic", "transaction_id")

    def __init__(self, transaction_id: uuid.UUID) -> None:
        super().__init__(transaction_id.bytes)
        self.transaction_id = transaction_id
        # Set when the cell is chosen: the other cells to ask if the chosen cell does not have the transaction, the
        # refusal of a cell that is away, and the version of the map at that time.
        self.left_cells: list[int]
        self.away: SystemBusy | None
        self.known_version: int
        # If set, the transaction is looked for only in the cell of this topic.
        self.topic: str | None = None

    def ready(self) -> bool:
        """Checks the operation like `Operation.ready`, and chooses the cell."""
        runtime.placement.choose(self)
        return super().ready()

    def choose_cell(self) -> bool:
        """Chooses the cell that is asked first: the cell that the id names. Always True."""
        served = [cell.cell for cell in runtime.cells()]
        named = ids.cell_of(self.transaction_id)
        self.cell = named if named in served else CONTROL
        self.left_cells = [cell for cell in served if cell != self.cell]
        self.away = None
        self.known_version = runtime.control(Known).version
        return True

    def is_only_in(self, topic: TopicFacts | None) -> bool:
        """Chooses the cell of a topic, if the topic is known, as the only cell to ask. Returns whether it is known."""
        if topic is not None:
            self.cell, self.version, self.left_cells, self.away = topic.cell_id, topic.version, [], None
        return topic is not None

    def may_be_elsewhere(self, problem: Exception) -> bool:
        return isinstance(problem, SystemBusy) and self.cell is not None and bool(self.left_cells)

    async def renew(self, refusal: Refusal) -> bool:
        """Chooses the next cell to ask, if any. Raises the refusal of a cell that is away and may have the transaction.

        The cell of `topic` is looked up again, because the topic may have moved. Raises TopicMoved if the map has
        changed while the cells were asked.
        """
        if self.cell is None:
            return await self._has_been_split(refusal)
        if isinstance(refusal, TopicMoved):
            return self.topic is not None and await self._has_moved(self.topic)
        if isinstance(refusal, SystemBusy):
            self.away = self.away or refusal
        elif isinstance(refusal, NotDiscarded) or not isinstance(refusal, TransactionNotFound):
            return False
        if self.left_cells:
            self.cell = self.left_cells.pop(0)
            return True
        if self.away is not None:
            raise self.away
        if self.topic is not None:
            return await self._has_moved(self.topic)
        if await routing.has_changed(self.known_version):
            # The transaction may have moved from a cell that was not asked yet to a cell that was already asked.
            await cells.learn()
            raise TopicMoved(MAP_CHANGED)
        return False

    async def _has_been_split(self, refusal: Refusal) -> bool:
        """Whether the transaction was looked for in the only known cell, and this cell has been split meanwhile."""
        if runtime.chosen() is not None or not runtime.current().departed.topics:
            return False
        await cells.learn()
        if not isinstance(refusal, TransactionNotFound):
            return False
        OfTransaction.choose_cell(self)
        return bool(self.left_cells)

    async def _has_moved(self, topic: str) -> bool:
        before = self.cell, self.version
        topics.forget(topic)
        self.is_only_in(await topics.existing(topic))
        return (self.cell, self.version) != before
