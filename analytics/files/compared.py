"""Compares an export with the rows that the broker still has: so files and list that were forged together are found."""

import hashlib
from collections.abc import Iterator

import pyarrow

from analytics.closed import ClosedRange
from analytics.connections import Connection, read
from analytics.errors import ExportDamaged, FolderRefused
from analytics.files import increments, parts
from analytics.files.hadoop import Place
from analytics.files.manifest import Manifest, Part
from analytics.rows import StoredBody, StoredMessage
from store.db.statements import Statement
from store.messages import compression

READ_BODIES = Statement(__file__, "read_bodies", StoredBody)
STILL_UNDECIDED = Statement(__file__, "still_undecided", one=str)
# The number of rows whose bodies are in memory at once; a body may have some MB.
ROWS_AT_ONCE = 16


def messages(broker: Connection, place: Place, made: Manifest) -> Iterator[str]:
    """Yields a sentence for each message whose id or body in the files is not the broker's.

    Files that cannot be read are reported by their checksums.
    """
    for part in made.parts:
        if part.table == "messages" and part.first is not None:
            try:
                held = _held(place, part)
            except (OSError, pyarrow.ArrowException):
                continue
            yield from (
                f"{part.path}: the message at the log offset {offset} is not the broker's."
                for offset, digest in _stored(broker, part)
                if held.get(offset, digest) != digest
            )


def undecided(broker: Connection, place: Place, made: Manifest) -> Iterator[str]:
    """Yields a sentence for each transaction that is undecided since before the export, and not in its files."""
    listed = [part for part in made.parts if part.table == "transactions_open" and part.rows]
    held: set[str] = set()
    for part in listed:
        try:
            held.update(parts.columns(place, part, "transaction_id")["transaction_id"].to_pylist())
        except (OSError, pyarrow.ArrowException):
            return
    for transaction_id in read(broker, STILL_UNDECIDED, {"log_offset": made.ends.log_offset}):
        if transaction_id not in held:
            yield f"transactions_open: {transaction_id} is missing, which the broker has as undecided."


def _held(place: Place, part: Part) -> dict[int, bytes]:
    found = parts.columns(place, part, "log_offset", "message_id", "body")
    return {
        row["log_offset"]: _digest(row["message_id"], row["body"])
        for batch in found.to_batches(ROWS_AT_ONCE)
        for row in batch.to_pylist()
    }


def _stored(broker: Connection, part: Part) -> Iterator[tuple[int, bytes]]:
    with broker.cursor("bodies", row_factory=READ_BODIES.rows) as cursor:
        cursor.itersize = ROWS_AT_ONCE
        cursor.execute(READ_BODIES.sql(), {"segment_id": part.segment, "first": part.first, "last": part.last})
        for row in cursor:
            yield row.log_offset, _digest(str(row.message_id), _unpacked(row))


def _unpacked(row: StoredBody) -> bytes | None:
    is_packed = row.body is not None and row.body_form in compression.COMPRESSIONS
    return b"".join(compression.pieces(row.body_form, row.body)) if is_packed else row.body


def _digest(message_id: str, body: bytes | None) -> bytes:
    return hashlib.sha256(f"{message_id} {body is None} ".encode() + (body or b"")).digest()


FIND_MESSAGE = Statement(__file__, "find_message", StoredMessage)


def require_same(
    broker: Connection, place: Place | None, before: Manifest | None, ranges: ClosedRange, name: str
) -> None:
    """Raises FolderRefused unless the earlier export comes from this database and from its present history.

    Raises ExportDamaged if the last messages of the earlier export cannot be read.
    """
    if before is None or place is None:
        return
    reached = increments.reached(ranges, increments.NOTHING)
    behind = reached.log_offset < before.ends.log_offset and any(one.messages for one in ranges.segments)
    if before.database != name or behind or _is_replaced(broker, place, before):
        raise FolderRefused(
            f"The folder holds an export of another database ({before.database}, this is {name}), or of a later "
            "state of this one: give a new folder."
        )


def _is_replaced(broker: Connection, place: Place, before: Manifest) -> bool:
    try:
        return any(replaced(broker, place, before))
    except pyarrow.ArrowException as problem:
        raise ExportDamaged(
            f"The last messages in {place} cannot be read: `./mq export --verify DIR` names all that is damaged."
        ) from problem


def replaced(broker: Connection, place: Place, made: Manifest) -> Iterator[str]:
    """Yields a sentence if the broker has a different message, or none, at the last log offset of the export.

    A message that retention has dropped is not reported. The last message is enough: a restored back-up lacks at least
    the messages that were stored last.
    """
    for part in made.parts:
        if part.table == "messages" and part.last is not None and part.last == made.ends.log_offset:
            [stored] = read(broker, FIND_MESSAGE, {"segment_id": part.segment, "log_offset": part.last})
            if stored.is_kept and str(stored.message_id) != _message_id(place, part):
                yield f"messages: the broker has another message at the log offset {part.last}, or none."


def _message_id(place: Place, part: Part) -> str:
    """The id of the last message of a file."""
    found = parts.columns(place, part, "log_offset", "message_id")
    at = found["log_offset"].to_pylist().index(part.last)
    return str(found["message_id"][at].as_py())
