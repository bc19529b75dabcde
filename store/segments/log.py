"""The commit log: every stored message, once."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from store import messages
from store.db import connections
from store.db.connections import Connection
from store.db.locks import SHARE_LOCK, TAKE_LOCKS
from store.db.statements import Statement
from store.messages import MessageRow, Record
from store.rows import Appended, HeldLog, OpenSegment

# The log position of a message: its segment and its log offset.
LogPosition = tuple[int, int]


APPEND_MESSAGES = Statement(__file__, "append_messages", Appended)
APPEND_NUMBERED = Statement(__file__, "append_numbered")
APPEND_NUMBERED_OF_ONE = Statement(__file__, "append_numbered_of_one")
HOLD_LOG = Statement(__file__, "hold_log", HeldLog)
OPEN_SEGMENT = Statement(__file__, "open_segment", OpenSegment)
READ_HANDED = Statement(__file__, "read_handed", MessageRow)
READ_MESSAGES = Statement(__file__, "read_messages", MessageRow)
TURN_SEGMENT = Statement(__file__, "turn_segment")

# Writers of the log share this advisory lock. While a session holds it alone, no append is under way.
APPENDERS_LOCK = 0x6D71_6C6F_6700
# How long a stepwise transaction waits for any other lock, because its own locks make others wait. A pipelined
# transaction has a shorter time, so that it gives up first when the two wait for each other.
LOCK_TIMEOUT = "250ms"
# After this the server ends a transaction whose client is stopped between two steps and holds its locks. A client that
# may only be slow gets more time (store/commit/silence.py).
SILENCE_MS = 500
# The parameters of HOLD_LOG. New writers wait behind a session that waits for the batches under way, which take
# milliseconds.
EXCLUSIVE = {"lock_timeout": "500 ms", "key": APPENDERS_LOCK}


# The statement has no parameters, so that the first statements of a transaction can be sent in one message. A roll or
# an export holds the log for half a second at most.
JOIN = (
    "BEGIN; SET LOCAL idle_in_transaction_session_timeout = %(silence_ms)s; SET LOCAL lock_timeout = '1s'; "
    f"{SHARE_LOCK.text}; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"
)


async def join(
    connection: Connection, locks: Iterable[int] = (), *, silence_ms: int = SILENCE_MS
) -> tuple[int, datetime]:
    """Begins a transaction of a writer of the log, with these locks. Returns the open segment and the database's time.

    The server ends the session if this process sends nothing for `silence_ms` between two steps.
    """
    keys = ", ".join(map(str, sorted(locks)))
    begin = JOIN % {"silence_ms": silence_ms, "key": APPENDERS_LOCK}
    locked = f"{TAKE_LOCKS.text}; " % {"keys": f"ARRAY[{keys}]"} if keys else ""
    cursor = await connection.execute(f"{begin}; {locked}{OPEN_SEGMENT.text}".encode(), prepare=False)
    while cursor.nextset():
        pass
    [segment] = await cursor.fetchall()
    return segment.id, segment.now


async def append(connection: Connection, segment_id: int, records: Sequence[Record]) -> None:
    """Appends the records in order, and sets their log offsets.

    Raises psycopg's UniqueViolation if another process has stored one of the ids since they were looked up.
    """
    columns = messages.columns(records)
    rows = await connections.execute(connection, APPEND_MESSAGES, {"segment_id": segment_id, **columns})
    offsets = {row.message_id: row.log_offset for row in rows}
    for record in records:
        record.log_offset = offsets[record.message_id]


def at(positions: Sequence[LogPosition]) -> dict[str, object]:
    """The parameters of READ_MESSAGES for these log positions."""
    return {"segment_id": [segment for segment, _ in positions], "log_offset": [offset for _, offset in positions]}


@asynccontextmanager
async def exclusive(connection: Connection) -> AsyncIterator[None]:
    """A transaction that holds the log alone: all batches under way have ended, and no batch begins before its end.

    Raises psycopg's LockNotAvailable if a writer does not finish in time; then nothing has changed.
    """
    async with connection.transaction():
        await connections.execute(connection, HOLD_LOG, EXCLUSIVE)
        yield


async def turn(connection: Connection, segment_id: int, before: str, state: str) -> None:
    """Turns a segment from the state `before` to the next `state`; nothing if the segment has another state."""
    turned = {"segment_id": segment_id, "before": before, "state": state}
    await connections.execute(connection, TURN_SEGMENT, turned)
