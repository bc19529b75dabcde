"""A source: the database of an outbox, as the broker meets it by one connection of its own."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple, Self

import psycopg
from psycopg.rows import TupleRow

from store.db.session import PLAIN, as_options
from store.db.statements import NoRow, RowType, Statement


class Listed(NamedTuple):
    """An outbox that is drained."""

    id: int
    name: str
    url: str
    schema: str
    topics: list[str]


class Turn(NamedTuple):
    """Whether this transaction is the one that drains the outbox."""

    search_path: str
    is_mine: bool


class Row(NamedTuple):
    """A row of an outbox. `seq` is the order in which rows of one sharding key were committed."""

    slot: int
    seq: int
    id: uuid.UUID
    topic: str
    body: str | None
    body_bytes: bytes | None
    tags: str | None
    keys: list[str] | None
    sharding_key: str | None
    properties: str | None
    delay_level: int | None
    delay_seconds: float | None
    deliver_at: datetime | None
    traceparent: str | None
    created_at: datetime


class Measured(NamedTuple):
    """The next rows, the bytes of those that are not too large, and how many are."""

    next_rows: int
    bytes: int
    large: int


class Waits(NamedTuple):
    """How many rows wait, and since when the first does."""

    waiting: int
    oldest_at: datetime | None


class Slot(NamedTuple):
    """A partition of the outbox."""

    slot: int


class Cleared(NamedTuple):
    """Whether a partition's disk was given back."""

    is_cleared: bool


TAKE_TURN = Statement(__file__, "take_turn", Turn)
TAKE_ROWS = Statement(__file__, "take_rows", Row)
MEASURE_ROWS = Statement(__file__, "measure_rows", Measured)
SET_LARGE_APART = Statement(__file__, "set_large_apart")
SET_APART = Statement(__file__, "set_apart")
LOOK_AT_OUTBOX = Statement(__file__, "look_at_outbox", Waits)
FALL_ASLEEP = Statement(__file__, "fall_asleep")
TURN_SLOT = Statement(__file__, "turn_slot", Slot)
CLEAR_SLOT = Statement(__file__, "clear_slot", Cleared)

CHANNEL = "mqbroker_outbox"
CONNECT_SECONDS = 5
# Of the session: a statement that waits for a lock, and a process that is frozen within a transaction, hold others up
# for no longer.
# None of it is left as the source has it by default. A partition is truncated after a look for rows, which has to see
# what was committed up to then.
SESSION = as_options(
    {**PLAIN, "statement_timeout": "10s", "lock_timeout": "3s", "idle_in_transaction_session_timeout": "20s"}
)


class Source:
    """A connection to a source, in autocommit but for `turn`."""

    def __init__(self, connection: psycopg.AsyncConnection[TupleRow], schema: str) -> None:
        self.connection = connection
        self._schema = schema

    @classmethod
    async def connected(cls, listed: Listed) -> Self:
        """A new connection that listens; the caller closes it. Raises psycopg's OperationalError."""
        connection = await psycopg.AsyncConnection.connect(
            listed.url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="mqbroker-outbox",
            options=SESSION,
            keepalives_idle=10,
            tcp_user_timeout=15_000,
        )
        try:
            await connection.execute(f"LISTEN {CHANNEL}")
        except BaseException:
            await connection.close()
            raise
        return cls(connection, listed.schema)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """A transaction in the schema of the outbox; yields whether this process may drain it now."""
        async with self.connection.transaction():
            [turn] = await self.read(TAKE_TURN, {"schema": self._schema})
            yield turn.is_mine

    async def read(self, statement: Statement[RowType], given: Mapping[str, Any] | None = None) -> Sequence[RowType]:
        """The rows of one statement."""
        async with self.connection.cursor(row_factory=statement.rows) as cursor:
            await cursor.execute(statement.sql(), given or {})
            return await cursor.fetchall()

    async def write(self, statement: Statement[NoRow], given: Mapping[str, Any] | None = None) -> None:
        """Executes a statement without rows."""
        await self.connection.execute(statement.sql(), given or {})

    async def wait(self, seconds: float) -> None:
        """Waits until a producer notifies, for so long at most. What came since the last wait counts, too."""
        async for _ in self.connection.notifies(timeout=seconds, stop_after=1):
            pass

    async def close(self) -> None:
        """Closes the connection."""
        await self.connection.close()
