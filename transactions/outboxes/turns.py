"""A turn at an outbox: the drain measures, takes and stores rows, and sets apart rows that cannot become messages."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.conf import settings

from access.callers import Caller
from store.db.statements import NoRow, Statement
from store.messages import MAX_PROPERTIES_BYTES
from store.process import runtime
from transactions.outboxes import messages
from transactions.outboxes.closed import Closed
from transactions.outboxes.progress import FEWER
from transactions.outboxes.rows import Listed, Measured, Refused, Row, Small, Turn
from transactions.outboxes.sessions import SourceUnreadable
from transactions.outboxes.source import DELETE_ROWS, MEASURE_ROWS, SET_APART, TAKE_ROWS, Source
from webhooks.slots import Allowance

MAX_BYTES = 4 * 1024 * 1024
# The most bytes of rows that all outboxes together hold in one process. A batch waits until its bytes are free.
MAX_HELD_BYTES = 16 * 1024 * 1024
HOLD_SECONDS = 5.0
# The bytes of a small turn, which takes rows without having measured them first.
SMALL_BYTES = 256 * 1024
# The most bytes of keys or properties as JSON, where a character takes up to nine; also in `measure_rows`.
MAX_JSON_BYTES = 9 * MAX_PROPERTIES_BYTES + 16 * 1024
# The bytes of a measured row besides its fields: id, times and number.
MORE_BYTES = 1024


class Taken(NamedTuple):
    """The number of rows that a turn has taken, and how many of them were set apart; whether more rows wait, and
    whether rows of the turn have to wait.
    """

    rows: int = 0
    refused: int = 0
    are_more: bool = False
    must_wait: bool = False


class NotSmall(Exception):
    """A turn cannot be done in one step: a row is too large, was refused, has to wait, or was not deleted."""


class Held:
    """The bytes of rows that all drains of this process hold."""

    def __init__(self) -> None:
        self.bytes = Allowance(MAX_HELD_BYTES)


class _SomeLeft(Exception):
    """Some rows were refused or have to wait; the others are stored.

    The turn's writes in the source are undone, then the stored rows are deleted.
    """

    def __init__(self, rows: Sequence[Row], left: messages.Left) -> None:
        super().__init__()
        self.rows, self.left = rows, left

    @property
    def stored(self) -> list[tuple[int, int]]:
        """The slots and numbers of the stored rows."""
        left = {one[:2] for one in (*self.left.refused, *self.left.waiting)}
        return sorted({row[:2] for row in self.rows} - left)


class Batch:
    """The rows of one turn, at most `max_rows`, in a transaction of the source."""

    def __init__(self, source: Source, listed: Listed, max_rows: int, closed: Closed) -> None:
        self._source = source
        self._closed = closed
        # The bytes of the first measured row.
        self._place: tuple[int, int] | None = None
        self._caller = caller_of(listed)
        self._max_rows = max_rows
        self._max_row_bytes = settings.MAX_MESSAGE_BYTES + MAX_PROPERTIES_BYTES

    async def take(self, first: Turn) -> Taken:
        """Takes the next rows, stores their messages, and sets refused rows apart.

        If the content of a row makes the source fail, the turn is repeated with fewer rows until this row is alone;
        then it is set apart with the reason. Raises the errors that concern all rows.
        """
        while True:
            try:
                return await self._take()
            except messages.OF_CONTENT as problem:
                if self._max_rows == 1:
                    slot, seq = self._place or (first.slot, first.seq)
                    if slot is None or seq is None or (self._place is None and self._closed.topics):
                        raise
                    await self._set_apart([Refused(slot, seq, messages.reason_of(problem))])
                    return Taken(1, 1, are_more=True)
            self._max_rows = max(self._max_rows // FEWER, 1)

    async def _take(self) -> Taken:
        large: list[Refused] = []
        try:
            async with self._source.undoing():
                measured = await self._source.read(
                    MEASURE_ROWS, {"max_rows": self._max_rows, "closed": self._closed.topics}
                )
                self._place = measured[0][:2] if measured else None
                large = [self._too_large(row) for row in measured if self._is_too_large(row)]
                taken = await self._store(self._fitting(measured))
        except _SomeLeft as some:
            left = some.left
            self._closed.add(left.reasons)
            if left.refused:
                await self._set_apart(left.refused)
            await self._write_all(DELETE_ROWS, len(some.stored), _places(some.stored))
            taken = Taken(len(some.rows) - len(left.waiting), len(left.refused))
        if large:
            await self._set_apart(large)
        rows = taken.rows + len(large)
        return taken._replace(rows=rows, refused=taken.refused + len(large), are_more=rows > 0)

    def _is_too_large(self, row: Measured) -> bool:
        return row.bytes > self._max_row_bytes or max(row.keys, row.properties) > MAX_JSON_BYTES

    def _too_large(self, row: Measured) -> Refused:
        size, field = row.largest
        if row.bytes > self._max_row_bytes:
            reason = f"{field} has {size:,} bytes, and a row may have {self._max_row_bytes:,} bytes"
        else:
            size, field = max((row.keys, "keys"), (row.properties, "properties"))
            reason = f"{field} has at least {size:,} bytes, and may have {MAX_PROPERTIES_BYTES:,}"
        return Refused(row.slot, row.seq, f"message_too_large: {reason}: make {field} smaller.")

    def _fitting(self, measured: Sequence[Measured]) -> Sequence[Measured]:
        """The first rows that are not too large: as many as have MAX_BYTES together, and at least one."""
        fitting: list[Measured] = []
        size = 0
        for row in measured:
            if not self._is_too_large(row) and size < MAX_BYTES:
                fitting.append(row)
                size += row.bytes
        return fitting

    async def _store(self, measured: Sequence[Measured]) -> Taken:
        """Stores the messages of rows. Raises _SomeLeft if some are not stored."""
        if not measured:
            return Taken()
        async with contextlib.AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(held(sum(row.bytes for row in measured)))
            except TimeoutError:
                return Taken(must_wait=True)
            size = sum(row.bytes + MORE_BYTES for row in measured)
            given = {**_places(measured), "max_row_bytes": self._max_row_bytes}
            rows = await self._source.read_counted(TAKE_ROWS, given, len(measured), size)
            if not rows:
                raise SourceUnreadable(
                    f"{len(measured)} rows wait in mqbroker_outbox, and a DELETE removes none of them: a "
                    "trigger, a rule or a view prevents it. Create the table with the statements of "
                    "docs/sql.md."
                )
            left = await messages.store(rows, self._caller)
        if left.refused or left.waiting:
            raise _SomeLeft(rows, left)
        return Taken(len(rows))

    async def _set_apart(self, refused: Sequence[Refused]) -> None:
        reasons = [self._source.written(one.reason) for one in refused]
        await self._write_all(SET_APART, len(refused), {**_places(refused), "reasons": reasons})

    async def _write_all(self, statement: Statement[NoRow], count: int, given: Mapping[str, Any]) -> None:
        """Writes this number of rows. Raises SourceUnreadable if the source keeps or drops some of them."""
        written = await self._source.write(statement, given)
        if written != count:
            raise SourceUnreadable(
                f"{statement.name} wrote {written} of {count} rows: a trigger of mqbroker_outbox or "
                "mqbroker_outbox_refused keeps or drops the others. Drop this trigger."
            )


def held(size: int) -> contextlib.AbstractAsyncContextManager[None]:
    """Within the block, this number of bytes is held for rows. Raises TimeoutError if they do not become free within
    HOLD_SECONDS.
    """
    return runtime.control(Held).bytes.hold(size, HOLD_SECONDS)


async def take_small(rows: Sequence[Small], listed: Listed) -> Taken:
    """Stores the messages of the rows that a small turn has taken. Raises NotSmall unless all messages are stored."""
    taken = [row.row for row in rows if row.seq is not None]
    if not taken and rows[0].first_seq is not None:
        raise NotSmall
    left = await messages.store(taken, caller_of(listed)) if taken else messages.Left()
    if left.refused or left.waiting:
        raise NotSmall
    return Taken(len(taken), are_more=rows[0].waiting > len(taken))


def caller_of(listed: Listed) -> Caller:
    """The sender of the rows of an outbox, with the rights of the outbox."""
    return Caller(f"outbox {listed.name}", tuple(f"produce:{topic}" for topic in listed.topics))


def _places(rows: Sequence[Any]) -> dict[str, list[int]]:
    """The places of rows: their slots and numbers."""
    return {"slots": [row[0] for row in rows], "seqs": [row[1] for row in rows]}
