"""A batch: one transaction of the group commit, and the kinds of request that are written in it."""

import asyncio
import uuid
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from store import queues
from store.db import connections
from store.db.connections import Connection
from store.db.statements import RowType, Statement
from store.errors import Refusal
from store.messages import Record
from store.messages.accept import FIND_MESSAGES, Accepted, StoredBefore

Request = TypeVar("Request")


class Pending(Generic[Request]):
    """One request that waits to be written, and what is to be answered once it is."""

    __slots__ = (
        "before",
        "future",
        "holders",
        "key",
        "kind",
        "note",
        "outcome",
        "request",
        "size",
        "submitted_at",
        "urgent",
    )

    def __init__(
        self,
        kind: "Kind[Request]",
        request: Request,
        key: Hashable,
        size: int,
        urgent: bool,
        note: "Note | None" = None,
    ) -> None:
        self.kind = kind
        self.request = request
        self.key = key
        self.size = size
        self.urgent = urgent
        self.note = note
        # By the clock of the event loop.
        self.submitted_at = asyncio.get_running_loop().time()
        # The sessions whose lock an attempt has waited for, as far as that was found out.
        self.holders = ""
        # What the request changed, as it was; for its note.
        self.before: Any = None
        self.outcome: Any = None
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def resolve(self) -> None:
        """Answers the waiter, unless it has gone away."""
        if self.future.done():
            return
        if isinstance(self.outcome, Exception):
            self.future.set_exception(self.outcome)
        else:
            self.future.set_result(self.outcome)


def settle(pending: list[Pending[Any]], refusal: Refusal | Exception) -> None:
    """Answers every request of a batch that was not written with the same refusal."""
    for one in pending:
        one.outcome = refusal
    resolve(pending)


def resolve(pending: list[Pending[Any]]) -> None:
    """Answers the callers of these requests, which are durable or refused now."""
    for one in pending:
        one.resolve()


# Writes a row about a request beside what its kind writes; called once its outcome is known, before the commit.
Note = Callable[["Batch", Pending[Any]], None]


class Batch:
    """One transaction of the group commit while it is written."""

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
        """Adds messages to be stored; their log offsets are known in the step `place`."""
        self.records.extend(records)

    def enqueue(self, entry: queues.Entry) -> None:
        """Adds an entry, which makes a stored message visible; its queue offset is known in the step `record`."""
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


class Kind(Generic[Request]):
    """A kind of request that is written in batches, in three steps that all kinds of a batch take together.

    Each step sees the requests of this kind and sets `outcome` of those it settles: an answer, or a Refusal.
    A batch may be done over: a step must keep nothing between two calls, and change no request.

    Kinds of one `lane` share a writer, and so their batches; those of another lane neither wait for them nor keep any
    order with them.
    """

    lane = "log"

    def locks(self, pending: list[Pending[Request]]) -> Iterable[int]:
        """Keys of advisory locks that the batch takes as it begins, in one message, those of all kinds in order."""
        return ()

    async def decide(self, batch: Batch, pending: list[Pending[Request]]) -> None:
        """Locks and looks up what is concerned; has messages appended."""

    async def place(self, batch: Batch, pending: list[Pending[Request]]) -> None:
        """Log offsets are known: writes rows and publishes."""

    async def record(self, batch: Batch, pending: list[Pending[Request]]) -> None:
        """Queue offsets are known: writes what must hold them, and sets the answers."""
