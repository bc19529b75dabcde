"""A stepwise batch: one transaction of several round trips, with the records, entries and rows to be written."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from store import queues
from store.db import connections
from store.db.connections import Connection
from store.db.statements import RowType, Statement
from store.messages import Record
from store.messages.accept import FIND_MESSAGES, Accepted
from store.rows import StoredBefore


class Overtaken(Exception):
    """Two statements of a batch have read rows that contradict each other: another process has committed in between.

    The batch is rolled back and repeated.
    """


class Batch:
    """A transaction of the stepwise writer, while the writer adds its statements."""

    def __init__(self, connection: Connection, segment_id: int, now: datetime, *, again: bool) -> None:
        self.connection = connection
        self.segment_id = segment_id
        self.now = now
        # True from the second attempt on: an earlier attempt may have been committed, so ids may be stored already.
        self.again = again
        self.records: list[Record] = []
        self.entries: list[queues.Entry] = []
        self.afterwards: list[Callable[[], None]] = []
        self._rows: dict[Statement[Any], list[dict[str, object]]] = {}

    def append(self, records: Iterable[Record]) -> None:
        """Adds messages to be stored; their log offsets are known after the first `yield` of `Operation.write`."""
        self.records.extend(records)

    def enqueue(self, entry: queues.Entry) -> None:
        """Adds an entry, which makes a stored message visible; its queue offset is known after the second `yield`."""
        self.entries.append(entry)

    def insert(self, statement: Statement[Any], row: dict[str, object]) -> None:
        """Adds a row for a statement that takes the columns of all its rows as arrays."""
        self._rows.setdefault(statement, []).append(row)

    def after_commit(self, call: Callable[[], None]) -> None:
        """Adds a function that this process calls after the commit.

        The function may not be called after a crash, so it must not be essential; it must raise nothing.
        """
        self.afterwards.append(call)

    async def read(self, statement: Statement[RowType], parameters: dict[str, Any]) -> Sequence[RowType]:
        """The rows of a statement within the batch's transaction."""
        return await connections.execute(self.connection, statement, parameters)

    async def stored_before(self, accepted: Sequence[Accepted]) -> dict[uuid.UUID, StoredBefore]:
        """The messages that are stored already, by id.

        After a failed attempt, ids that the broker made are looked up, too.
        """
        ids = [one.message_id for one in accepted if one.may_repeat or self.again]
        rows = await self.read(FIND_MESSAGES, {"message_ids": ids}) if ids else ()
        return {row.message_id: row for row in rows}

    async def write_rows(self) -> None:
        """Writes the rows that `insert` has collected, one statement for each kind of row."""
        gathered, self._rows = self._rows, {}
        for statement, rows in gathered.items():
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            await connections.execute(self.connection, statement, {"segment_id": self.segment_id, **columns})
