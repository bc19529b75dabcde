"""Operations on a transaction that is named by its id: the cell that has begun it is asked first, then the others."""

import uuid
from typing import TypeVar

from store.cells import cells
from store.commit.operation import Operation
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

# No map has this version.
UNKNOWN_VERSION = -1
MAP_CHANGED = "The map from topics to cells has changed while the transaction was looked for: try again in a second."


class OfTransaction(Operation[Result]):
    """An operation on one transaction, which lies in one cell.

    Its id names the cell where the broker made it; one that a caller chose names none. A cell that is away may have it:
    its refusal is answered where no other cell has it, for nothing says then that there is no such transaction.
    """

    __slots__ = ("away", "known_version", "left_cells", "topic", "transaction_id")

    def __init__(self, transaction_id: uuid.UUID) -> None:
        super().__init__(transaction_id.bytes)
        self.transaction_id = transaction_id
        # Once its cell is chosen: those that are asked where it does not have the transaction, the refusal of one that
        # is away, and the version of the map as they were chosen.
        self.left_cells: list[int]
        self.away: SystemBusy | None
        self.known_version: int
        # That in whose cell alone it is looked for, where it is named.
        self.topic: str | None = None

    def ready(self) -> bool:
        """As every operation; its cell is chosen here."""
        if runtime.several:
            self._choose_cell()
        return super().ready()

    def _choose_cell(self) -> None:
        served = [cell.cell for cell in runtime.cells()]
        named = ids.cell_of(self.transaction_id)
        self.cell = named if named in served else CONTROL
        self.left_cells = [cell for cell in served if cell != self.cell]
        self.away = None
        self.known_version = runtime.control(Known).version

    def is_only_in(self, topic: TopicFacts | None) -> bool:
        """Has it looked for in the cell of a topic alone, where that is known; whether it is."""
        if topic is not None:
            self.cell, self.version, self.left_cells, self.away = topic.cell_id, topic.version, [], None
        return topic is not None

    def may_be_elsewhere(self, problem: Exception) -> bool:
        return isinstance(problem, SystemBusy) and self.cell is not None and bool(self.left_cells)

    async def renew(self, refusal: Refusal) -> bool:
        """Whether another cell is to be asked. Raises the refusal of one that is away and may have the transaction.

        So is that of its topic, where this process had an old one in mind. Raises TopicMoved where the map has changed
        while one after another was asked.
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
            # It may have gone from a cell that was not asked yet to one that was.
            await cells.learn()
            raise TopicMoved(MAP_CHANGED)
        return False

    async def _has_been_split(self, refusal: Refusal) -> bool:
        """Whether it was looked for in the only cell that this process knew, which was split meanwhile."""
        if runtime.chosen() is not None or not runtime.current().departed.topics:
            return False
        await cells.learn()
        if runtime.several and isinstance(refusal, TransactionNotFound):
            OfTransaction._choose_cell(self)
            return True
        return False

    async def _has_moved(self, topic: str) -> bool:
        before = self.cell, self.version
        topics.forget(topic)
        self.is_only_in(await topics.existing(topic))
        return (self.cell, self.version) != before
