"""A connection to a source, the database of an outbox. The broker does not trust anything that a source sends."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, LiteralString, Self, cast

import psycopg
from psycopg import capabilities, sql

from store.db import patience
from store.db.patience import PatientAsyncConnection
from store.db.statements import NoRow, RowType, Statement
from store.errors import MessageIllegal
from transactions.outboxes import places
from transactions.outboxes.rows import Holder, Listed, Measured, Row, Turn, Waits

ENTER_SOURCE = Statement(__file__, "enter_source", one=int)
DESCRIBE_SOURCE = Statement(__file__, "describe_source", one=bool)
TAKE_TURN = Statement(__file__, "take_turn", Turn)
HOLD_STATE = Statement(__file__, "hold_state", one=int)
FIND_HOLDER = Statement(__file__, "find_holder", Holder)
MEASURE_ROWS = Statement(__file__, "measure_rows", Measured)
TAKE_ROWS = Statement(__file__, "take_rows", Row)
SET_APART = Statement(__file__, "set_apart")
DELETE_ROWS = Statement(__file__, "delete_rows")
LOOK_AT_OUTBOX = Statement(__file__, "look_at_outbox", Waits)
FALL_ASLEEP = Statement(__file__, "fall_asleep")
TURN_SLOT = Statement(__file__, "turn_slot", one=int)
CLEAR_SLOT = Statement(__file__, "clear_slot", one=bool)

# The time to connect to one address, and to all addresses of the hosts.
CONNECT_SECONDS = 5
CONNECT_ALL_SECONDS = 20
# More than the statement time-out, which a working source enforces itself.
ANSWER_SECONDS = 15
# Rows that libpq 17 and later returns together: too many rows are noticed after this number.
CHUNK_ROWS = 50 if capabilities.has_stream_chunked() else 1
# Defaults of the role or the database that the broker's transactions override.
BEGIN: LiteralString = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE NOT DEFERRABLE"
# Time-outs that a role may have, by the first version with them: of a transaction, which here waits for the broker's
# own database, and of an idle session, as between two steps.
TRANSACTION_TIMEOUT_SINCE, NO_TRANSACTION_TIMEOUT = 170000, sql.SQL("SET LOCAL transaction_timeout = 0")
IDLE_TIMEOUT_SINCE, NO_IDLE_TIMEOUT = 140000, sql.SQL("SET idle_session_timeout = 0")
SAVEPOINT, UNDO = sql.SQL("SAVEPOINT taken"), sql.SQL("ROLLBACK TO taken")
# Encodings that PostgreSQL cannot convert to UTF-8, so their texts cannot be read.
UNREADABLE = {"SQL_ASCII", "MULE_INTERNAL"}


class SourceUnreadable(MessageIllegal):
    """The broker cannot work with this source, or with the data that it sends."""


class Source:
    """A connection to a source. Each statement is in a `transaction`, and each wait has a limit."""

    def __init__(self, connection: PatientAsyncConnection, schema: str) -> None:
        self.connection = connection
        self.schema = schema
        self.notifies = False
        path = sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema))
        self._enter: list[sql.Composable] = [sql.SQL(BEGIN), ENTER_SOURCE.sql(), path]
        if connection.info.server_version >= TRANSACTION_TIMEOUT_SINCE:
            self._enter.append(NO_TRANSACTION_TIMEOUT)

    @classmethod
    async def connected(cls, listed: Listed) -> Self:
        """A new connection; the caller closes it. Raises psycopg's OperationalError, or SourceUnreadable."""
        source = cls(await connect(listed.url, "mqbroker-outbox"), listed.schema)
        try:
            async with source.transaction():
                [source.notifies] = await source.read(DESCRIBE_SOURCE)
        except BaseException:
            await source.close()
            raise
        return source

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction in the schema of the outbox, with the broker's settings, not those of role or database."""
        async with self._entered(ENTER_SOURCE):
            yield

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """A transaction that tries to take the turn; yields the `Turn`. Raises SourceUnreadable."""
        async with self._entered(TAKE_TURN, SAVEPOINT) as turns:
            if not turns:
                raise SourceUnreadable(
                    "mqbroker_outbox_state has no row, which is the turn: "
                    "execute INSERT INTO mqbroker_outbox_state DEFAULT VALUES."
                )
            yield turns[0]

    @contextlib.asynccontextmanager
    async def undoing(self) -> AsyncIterator[None]:
        """A block within a turn whose writes are undone if it raises; the turn continues."""
        try:
            yield
        except Exception:
            # The session was lost, and its first error is raised.
            with contextlib.suppress(psycopg.Error):
                await self._send(UNDO)
            raise

    @contextlib.asynccontextmanager
    async def _entered(self, first: Statement[RowType], *further: sql.SQL) -> AsyncIterator[list[RowType]]:
        """A transaction that sends its settings and `first` in one message; yields the rows of `first`."""
        found: Sequence[Any] = ()
        async with self.connection.cursor() as cursor:
            with patience.of(ANSWER_SECONDS):
                await cursor.execute(sql.SQL("; ").join([*self._enter, first.sql(), *further]))
            is_more: bool | None = True
            while is_more:
                # The last statement with rows is `first`.
                found = await cursor.fetchall() if cursor.description is not None else found
                is_more = cursor.nextset()
        make = first.rows(None)
        try:
            yield [make(row) for row in found]
        except BaseException:
            # As in `undoing`.
            with contextlib.suppress(psycopg.Error):
                await self._send(sql.SQL("ROLLBACK"))
            raise
        await self._send(sql.SQL("COMMIT"))

    async def read(self, statement: Statement[RowType], given: Mapping[str, Any] | None = None) -> Sequence[RowType]:
        """The rows of one statement that itself limits the number and size of its rows."""
        with patience.of(ANSWER_SECONDS):
            async with self.connection.cursor(row_factory=statement.rows, binary=True) as cursor:
                await cursor.execute(statement.text.encode(), given or {})
                return await cursor.fetchall()

    async def read_counted(
        self, statement: Statement[RowType], given: Mapping[str, Any], max_rows: int, max_bytes: int
    ) -> Sequence[RowType]:
        """The rows of a statement for which a view, rule or trigger may return more than requested.

        Rows are counted as they arrive. Raises SourceUnreadable if they are too many or too large.
        """
        cursor = self.connection.cursor(row_factory=statement.rows, binary=True)
        found: list[RowType] = []
        size = 0
        asked = cursor.stream(statement.text.encode(), given, size=CHUNK_ROWS)
        with patience.of(ANSWER_SECONDS):
            # Closing the generator frees the connection.
            async with contextlib.aclosing(cast(AsyncGenerator[RowType], asked)) as rows:
                async for row in rows:
                    found.append(row)
                    size += _size_of(row)
                    if len(found) > max_rows or size > max_bytes:
                        # Further rows are not read.
                        self.connection.pgconn.finish()
                        raise SourceUnreadable(
                            f"{statement.name} gave more than {max_rows} rows or {max_bytes:,} bytes, as no table of "
                            "docs/sql.md does: make mqbroker_outbox by the statements of that page."
                        )
        return found

    def written(self, text: str) -> str:
        """A text of the broker in a form that this database can store, whatever is quoted in it."""
        codec = "utf-8" if self.connection.info.parameter_status("server_encoding") == "UTF8" else "ascii"
        return text.encode(codec, "backslashreplace").decode(codec).replace("\x00", "\\x00")

    async def write(self, statement: Statement[NoRow], given: Mapping[str, Any] | None = None) -> int:
        """Executes a statement that returns no rows. Returns the number of rows that it wrote."""
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

    The start of the session has no options, which a pooler refuses, and the environment is not used: each transaction
    sets its settings. No statement is prepared, because a pooler would drop it. Raises psycopg's OperationalError,
    SourceUnreadable for an encoding that cannot be converted to UTF-8, and as `places`.
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
