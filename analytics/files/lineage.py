"""Checks that an export belongs to this database and its history: a restored back-up assigns offsets again."""

from collections.abc import Iterator

import pyarrow

from analytics.closed import ClosedRange
from analytics.connections import Connection, read
from analytics.errors import ExportDamaged, FolderRefused
from analytics.files import increments, parts
from analytics.files.manifest import Manifest, Part
from analytics.files.place import Place
from analytics.rows import StoredMessage
from store.db.statements import Statement

FIND_MESSAGE = Statement(__file__, "find_message", StoredMessage)


def require(broker: Connection, place: Place | None, before: Manifest | None, ranges: ClosedRange, name: str) -> None:
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

    A message that retention has dropped is not reported. Checking the last message is enough: a restored back-up always
    lacks the messages that were stored last.
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
