"""A source: the database of an outbox, met by a connection of the broker's own. Nothing that it sends is believed."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, LiteralString, Self, cast

import psycopg
from psycopg import capabilities, sql

from outboxes import places
from outboxes.rows import Cleared, Described, First, Holder, Listed, Measured, Row, Slot, Turn, Waits
from store.db import patience
from store.db.patience import PatientAsyncConnection
from store.db.statements import NoRow, RowType, Statement
from store.errors import MessageIllegal

ENTER_SOURCE = Statement(__file__, "enter_source")
DESCRIBE_SOURCE = Statement(__file__, "describe_source", Described)
FIND_FIRST = Statement(__file__, "find_first", First)
TAKE_TURN = Statement(__file__, "take_turn", Turn)
FIND_HOLDER = Statement(__file__, "find_holder", Holder)
MEASURE_ROWS = Statement(__file__, "measure_rows", Measured)
TAKE_ROWS = Statement(__file__, "take_rows", Row)
SET_APART = Statement(__file__, "set_apart")
DELETE_ROWS = Statement(__file__, "delete_rows")
LOOK_AT_OUTBOX = Statement(__file__, "look_at_outbox", Waits)
FALL_ASLEEP = Statement(__file__, "fall_asleep")
TURN_SLOT = Statement(__file__, "turn_slot", Slot)
CLEAR_SLOT = Statement(__file__, "clear_slot", Cleared)

# To one address; and to all that a name or several hosts stand for.
CONNECT_SECONDS = 5
CONNECT_ALL_SECONDS = 20
# Above the time-out of statements, which the source itself keeps while it is well.
ANSWER_SECONDS = 15
# Rows that libpq hands over together, from its version 17 on: what is too much is noticed behind so many.
CHUNK_ROWS = 10 if capabilities.has_stream_chunked() else 1
# Of a statement that is not asked for rows of the outbox.
FEW_ROWS, FEW_BYTES = 1000, 1024 * 1024
# No transaction of the broker's is one of these by a setting of the role or the database.
BEGIN: LiteralString = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE NOT DEFERRABLE"
# Time-outs that a role may have, by the version that made them: of a transaction, which waits for the broker's own
# database; and of a session between two looks.
TRANSACTION_TIMEOUT_SINCE, NO_TRANSACTION_TIMEOUT = 170000, sql.SQL("SET LOCAL transaction_timeout = 0")
IDLE_TIMEOUT_SINCE, NO_IDLE_TIMEOUT = 140000, sql.SQL("SET idle_session_timeout = 0")
# Of these PostgreSQL knows no way to UTF-8: their texts are bytes without a meaning.
UNREADABLE = {"SQL_ASCII", "MULE_INTERNAL"}


class SourceUnreadable(MessageIllegal):
    """What a source is or sends cannot be worked with."""


class Source:
    """A connection to a source. Each statement stands in a `transaction`, and none is waited for without an end."""

    def __init__(self, connection: PatientAsyncConnection, schema: str) -> None:
        self.connection = connection
        self.schema = schema
        self.notifies = False
        enter = [
            sql.SQL(BEGIN),
            ENTER_SOURCE.sql(),
            sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema)),
        ]
        if connection.info.server_version >= TRANSACTION_TIMEOUT_SINCE:
            enter.append(NO_TRANSACTION_TIMEOUT)
        # In one message.
        self._enter = sql.SQL("; ").join(enter)

    @classmethod
    async def connected(cls, listed: Listed) -> Self:
        """A new connection; the caller closes it. Raises psycopg's OperationalError, or SourceUnreadable."""
        source = cls(await connect(listed.url, "mqbroker-outbox"), listed.schema)
        try:
            async with source.transaction():
                [described] = await source.read(DESCRIBE_SOURCE)
        except BaseException:
            await source.close()
            raise
        source.notifies = described.notifies
        return source

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction in the schema of the outbox, in which nothing is as the role or the database has it."""
        await self._send(self._enter)
        try:
            yield
        except BaseException:
            # Of a session that was lost: what broke it is the error that is raised.
            with contextlib.suppress(psycopg.Error):
                await self._send(sql.SQL("ROLLBACK"))
            raise
        await self._send(sql.SQL("COMMIT"))

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """A transaction; yields whether this process may drain the outbox in it."""
        async with self.transaction():
            yield bool(await self.read(TAKE_TURN))

    @contextlib.asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """What the block does is undone when it raises, and the transaction goes on."""
        await self._send(sql.SQL("SAVEPOINT taken"))
        try:
            yield
        except Exception:
            await self._send(sql.SQL("ROLLBACK TO taken"))
            raise

    async def read(
        self,
        statement: Statement[RowType],
        given: Mapping[str, Any] | None = None,
        max_rows: int = FEW_ROWS,
        max_bytes: int = FEW_BYTES,
    ) -> Sequence[RowType]:
        """The rows of one statement, taken one behind the other. Raises SourceUnreadable for more than was asked for:
        a view and a rule answer what they will."""
        cursor = self.connection.cursor(row_factory=statement.rows, binary=True)
        found: list[RowType] = []
        size = 0
        asked = cursor.stream(statement.text.encode(), given or {}, size=CHUNK_ROWS)
        with patience.of(ANSWER_SECONDS):
            # Its end gives the connection back.
            async with contextlib.aclosing(cast(AsyncGenerator[RowType], asked)) as rows:
                async for row in rows:
                    found.append(row)
                    size += _size_of(row)
                    if len(found) > max_rows or size > max_bytes:
                        # What is still to come is not read.
                        self.connection.pgconn.finish()
                        raise SourceUnreadable(
                            f"{statement.name} gave more than {max_rows} rows or {max_bytes:,} bytes, as no table of "
                            "docs/sql.md does: make mqbroker_outbox by the statements of that page."
                        )
        return found

    def written(self, text: str) -> str:
        """A text of ours as this database can keep it, whatever is quoted in it."""
        codec = "utf-8" if self.connection.info.parameter_status("server_encoding") == "UTF8" else "ascii"
        return text.encode(codec, "backslashreplace").decode(codec).replace("\x00", "\\x00")

    async def write(self, statement: Statement[NoRow], given: Mapping[str, Any] | None = None) -> int:
        """Executes a statement without rows; the number of rows that it wrote."""
        with patience.of(ANSWER_SECONDS):
            cursor = await self.connection.execute(statement.sql(), given or {})
        return cursor.rowcount

    async def _send(self, text: sql.SQL | sql.Composed) -> None:
        with patience.of(ANSWER_SECONDS):
            await self.connection.execute(text)

    async def close(self) -> None:
        """Closes the connection."""
        await self.connection.close()


def _size_of(row: Any) -> int:
    return sum(len(value) for value in row if isinstance(value, str | bytes))


async def connect(url: str, application: str) -> PatientAsyncConnection:
    """A new connection in autocommit; the caller closes it.

    Nothing goes as an option of the start, which a pooler refuses, and nothing comes of the environment: each
    transaction sets what it needs. No statement is prepared, which a pooler would forget. Raises psycopg's
    OperationalError, SourceUnreadable for an encoding without a way to UTF-8, and what `places` raises.
    """
    try:
        async with asyncio.timeout(CONNECT_ALL_SECONDS):
            connection = await PatientAsyncConnection.connect(
                await places.reachable(places.read(url)),
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=CONNECT_SECONDS,
                application_name=application,
                options="",
                keepalives_idle=10,
                tcp_user_timeout=ANSWER_SECONDS * 1000,
            )
    except TimeoutError:
        raise SourceUnreadable(f"The source took no connection within {CONNECT_ALL_SECONDS} s.") from None
    try:
        _require_readable(connection.info.parameter_status("server_encoding"))
        if connection.info.server_version >= IDLE_TIMEOUT_SINCE:
            await connection.execute(NO_IDLE_TIMEOUT)
    except BaseException:
        await connection.close()
        raise
    return connection


def _require_readable(encoding: str | None) -> None:
    if encoding in UNREADABLE:
        raise SourceUnreadable(
            f"The encoding of the database is {encoding}, whose texts no reader can be sure of: "
            "move the outbox to a database with the encoding UTF8."
        )
