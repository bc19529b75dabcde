"""A stepwise batch: one transaction of several round trips, and what its operations have it write."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from store import queues
from store.db import connections
from store.db.connections import Connection
from store.db.statements import RowType, Statement
from store.messages import Record
from store.messages.accept import FIND_MESSAGES, Accepted, StoredBefore


class Overtaken(Exception):
    """What two statements of a batch have read cannot be true at once: another process has committed in between.

    The batch is rolled back and done over.
    """


class Batch:
    """One transaction of the stepwise writer while it is written."""

    def __init__(self, connection: Connection, segment_id: int, now: datetime, *, again: bool) -> None:
        self.connection = connection
        self.segment_id = segment_id
        self.now = now
        # On a second attempt nothing may be taken for new without looking.
        self.again = again
        self.records: list[Record] = []
        self.entries: list[queues.Entry] = []
        self.afterwards: list[Callable[[], None]] = []
        self._rows: dict[Statement[Any], list[dict[str, object]]] = {}

    def append(self, records: Iterable[Record]) -> None:
        """Adds messages to be stored; their log offsets are known behind the first pause of `Operation.write`."""
        self.records.extend(records)

    def enqueue(self, entry: queues.Entry) -> None:
        """Adds an entry, which makes a stored message visible; its queue offset is known behind the second pause."""
        self.entries.append(entry)

    def insert(self, statement: Statement[Any], row: dict[str, object]) -> None:
        """Adds a row to those that a statement writes, which takes its columns as arrays."""
        self._rows.setdefault(statement, []).append(row)

    def after_commit(self, call: Callable[[], None]) -> None:
        """Adds a call to be made in this process once the batch is durable; it may be lost, and must not fail."""
        self.afterwards.append(call)

    async def read(self, statement: Statement[RowType], parameters: dict[str, Any]) -> Sequence[RowType]:
        """The rows of a statement within the batch's transaction."""
        return await connections.execute(self.connection, statement, parameters)

    async def stored_before(self, accepted: Sequence[Accepted]) -> dict[uuid.UUID, StoredBefore]:
        """The messages that are stored already, by id. After a failed attempt ids of the broker are looked up, too."""
        ids = [one.message_id for one in accepted if one.may_repeat or self.again]
        rows = await self.read(FIND_MESSAGES, {"message_ids": ids}) if ids else ()
        return {row.message_id: row for row in rows}

    async def write_rows(self) -> None:
        """Writes what `insert` has gathered, one statement per kind of row."""
        gathered, self._rows = self._rows, {}
        for statement, rows in gathered.items():
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            await connections.execute(self.connection, statement, {"segment_id": self.segment_id, **columns})
