"""A connection to a source, the database of an outbox. The broker does not trust anything that a source sends."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, Literal, LiteralString, Self, cast

import psycopg
from psycopg import capabilities, sql

from store.db import patience
from store.db.patience import PatientAsyncConnection
from store.db.statements import NoRow, RowType, Statement
from transactions.outboxes.rows import Described, Listed, Measured, Row, Small, Turn, Waits
from transactions.outboxes.sessions import ANSWER_SECONDS, SourceLocked, SourceUnreadable, connect

ENTER_SOURCE = Statement(__file__, "enter_source", one=int)
DESCRIBE_SOURCE = Statement(__file__, "describe_source", Described)
TAKE_TURN = Statement(__file__, "take_turn", Turn)
TAKE_SMALL = Statement(__file__, "take_small", Small)
HOLD_STATE = Statement(__file__, "hold_state", one=int)
FIND_HOLDER = Statement(__file__, "find_holder", one=str)
FIND_LOCKER = Statement(__file__, "find_locker", one=str)
MEASURE_ROWS = Statement(__file__, "measure_rows", Measured)
TAKE_ROWS = Statement(__file__, "take_rows", Row)
SET_APART = Statement(__file__, "set_apart")
DELETE_ROWS = Statement(__file__, "delete_rows")
LOOK_AT_OUTBOX = Statement(__file__, "look_at_outbox", Waits)
FALL_ASLEEP = Statement(__file__, "fall_asleep")
TURN_SLOT = Statement(__file__, "turn_slot", one=int)
CLEAR_SLOT = Statement(__file__, "clear_slot", one=bool)

# With libpq 17 and later the driver returns this many rows together. The broker can count the rows only after each such
# group.
CHUNK_ROWS = 50 if capabilities.has_stream_chunked() else 1
# Defaults of the role or the database that the broker's transactions override.
BEGIN: LiteralString = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE NOT DEFERRABLE"
# The version since which a role may have a time-out for transactions. The broker's transactions need none: they wait
# for the broker's own database.
TRANSACTION_TIMEOUT_SINCE, NO_TRANSACTION_TIMEOUT = 170000, "SET {scope} transaction_timeout = 0"
# In a session without a pooler, the server plans the statement once, and later calls use its name.
PREPARE, EXECUTE = "PREPARE mqbroker_take_small (integer, bigint) AS ", "EXECUTE mqbroker_take_small ({}, {})"
SAVEPOINT, UNDO = b"SAVEPOINT taken", b"ROLLBACK TO taken"


class Source:
    """A connection to a source. Each statement is in a `transaction`, and each wait has a limit."""

    def __init__(self, connection: PatientAsyncConnection, schema: str) -> None:
        self.connection = connection
        self.schema = schema
        self.notifies = False
        self._is_direct = self._is_prepared = False
        # The statements of a turn as bytes, made once: psycopg would compose and encode them again for each turn.
        self._enter = _message(sql.SQL(BEGIN), *self._settings("LOCAL"))

    @classmethod
    async def connected(cls, listed: Listed) -> Self:
        """A new connection; the caller closes it. Raises psycopg's OperationalError, or SourceUnreadable."""
        connection = await connect(listed.url, "mqbroker-outbox")
        source = cls(connection, listed.schema)
        try:
            async with source.transaction():
                [described] = await source.read(DESCRIBE_SOURCE, {"pid": connection.info.backend_pid})
            if described.is_direct:
                await source._keep_settings()
        except BaseException:
            await source.close()
            raise
        source.notifies = described.notifies
        return source

    def _settings(self, scope: Literal["LOCAL", "SESSION"]) -> list[sql.Composable]:
        """The statements that set the broker's settings, for a transaction or for the session."""
        path = sql.SQL(f"SET {scope} search_path TO {{}}").format(sql.Identifier(self.schema))
        found = [sql.SQL(ENTER_SOURCE.text % {"is_local": scope == "LOCAL"}), path]
        if self.connection.info.server_version >= TRANSACTION_TIMEOUT_SINCE:
            found.append(sql.SQL(NO_TRANSACTION_TIMEOUT.format(scope=scope)))
        return found

    async def _keep_settings(self) -> None:
        """Sets the settings for the whole session, which no pooler shares: transactions need not set them again."""
        await self._send(_message(*self._settings("SESSION")))
        self._enter = BEGIN.encode()
        self._is_direct = True

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction in the outbox's schema, with the broker's settings in place of the role's and database's."""
        async with self._entered():
            yield

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """A transaction that tries to take the turn; yields the `Turn`. Raises SourceUnreadable."""
        async with self._entered(TAKE_TURN.text.encode(), SAVEPOINT) as found:
            yield Turn(*_first(found))

    @contextlib.asynccontextmanager
    async def small_turn(self, max_rows: int, max_bytes: int) -> AsyncIterator[list[Small]]:
        """A transaction that tries to take the turn and the next rows in one message to the server.

        Yields one row or more, without fields if no row was taken. Raises SourceUnreadable.
        """
        taking = await self._taking(max_rows, max_bytes)
        async with self._entered(taking) as found:
            _first(found)
            yield [Small(*row) for row in found]

    async def _taking(self, max_rows: int, max_bytes: int) -> bytes:
        """The statement that takes rows. A session without a pooler has planned it once."""
        if not self._is_direct:
            return (TAKE_SMALL.text % {"max_rows": max_rows, "max_bytes": max_bytes}).encode()
        if not self._is_prepared:
            await self._send((PREPARE + TAKE_SMALL.text % {"max_rows": "$1", "max_bytes": "$2"}).encode())
            self._is_prepared = True
        return EXECUTE.format(max_rows, max_bytes).encode()

    @contextlib.asynccontextmanager
    async def undoing(self) -> AsyncIterator[None]:
        """A block within a turn. If the block raises, its writes are undone, and the turn continues."""
        try:
            yield
        except Exception:
            # If the session was lost, UNDO also fails; only the first error is raised.
            with contextlib.suppress(psycopg.Error):
                await self._send(UNDO)
            raise

    @contextlib.asynccontextmanager
    async def _entered(self, *statements: bytes) -> AsyncIterator[list[tuple[Any, ...]]]:
        """A transaction that begins with its settings and statements in one message; yields the last rows."""
        try:
            yield await self._began(statements)
        except BaseException as problem:
            # If the session was lost, this statement fails too; the first error is raised, as in `undoing`.
            with contextlib.suppress(psycopg.Error):
                await self._send(b"ROLLBACK")
                if isinstance(problem, psycopg.errors.LockNotAvailable):
                    locked = await self.read(FIND_LOCKER, {"schema": self.schema}) or ["a row: see pg_locks"]
                    raise SourceLocked(f"Another session has locked {locked[0]}.") from problem
            raise
        await self._send(b"COMMIT")

    async def _began(self, statements: Sequence[bytes]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        async with self.connection.cursor() as cursor:
            with patience.of(ANSWER_SECONDS):
                await cursor.execute(b"; ".join([self._enter, *statements]))
            is_more: bool | None = True
            while is_more:
                # `description` would be slower: it makes an object for each column.
                found = await cursor.fetchall() if cursor.rownumber is not None else found
                is_more = cursor.nextset()
        return found

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
            # If the generator is closed early, the connection becomes free again.
            async with contextlib.aclosing(cast(AsyncGenerator[RowType], asked)) as rows:
                async for row in rows:
                    found.append(row)
                    size += _size_of(row)
                    if len(found) > max_rows or size > max_bytes:
                        # Further rows are not read, because the answer has already too many rows or bytes.
                        self.connection.pgconn.finish()
                        raise SourceUnreadable(
                            f"{statement.name} returned more than {max_rows} rows or {max_bytes:,} bytes, "
                            "which the tables of docs/sql.md never do: create mqbroker_outbox with the "
                            "statements of that page."
                        )
        return found

    def written(self, text: str) -> str:
        """A text of the broker that this database can store, even if the text quotes other characters."""
        codec = "utf-8" if self.connection.info.parameter_status("server_encoding") == "UTF8" else "ascii"
        return text.encode(codec, "backslashreplace").decode(codec).replace("\x00", "\\x00")

    async def write(self, statement: Statement[NoRow], given: Mapping[str, Any] | None = None) -> int:
        """Executes a statement that returns no rows. Returns the number of rows that it wrote."""
        with patience.of(ANSWER_SECONDS):
            cursor = await self.connection.execute(statement.sql(), given or {})
        return cursor.rowcount

    async def _send(self, text: bytes) -> None:
        with patience.of(ANSWER_SECONDS):
            await self.connection.execute(text)

    async def close(self) -> None:
        """Closes the connection."""
        await self.connection.close()


def _message(*statements: sql.Composable) -> bytes:
    """Statements as one message to the server."""
    return sql.SQL("; ").join(statements).as_bytes(None)


def _first(found: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The first row of a turn. Raises SourceUnreadable."""
    if not found:
        raise SourceUnreadable(
            "mqbroker_outbox_state has no row, and a process takes the turn by a lock of this row: "
            "execute INSERT INTO mqbroker_outbox_state DEFAULT VALUES."
        )
    return found[0]


def _size_of(row: Any) -> int:
    return sum(len(value) for value in row if isinstance(value, str | bytes))
