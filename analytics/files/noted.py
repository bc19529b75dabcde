"""Notes a finished export in the broker's database: for retention, metrics, the console, and its own verification."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import psycopg

from analytics import connections
from analytics.connections import Connection, read
from analytics.files import manifest
from analytics.files.manifest import Manifest
from analytics.files.place import Place
from store.db.statements import Statement
from store.segments import exports


class NotedList(NamedTuple):
    """The SHA-256 of the list of an export's files, as it was written."""

    checksum: str


FIND_NOTED_LIST = Statement(__file__, "find_noted_list", NotedList)


def note(conninfo: str, target: str, made: Manifest) -> str | None:
    """Notes an export whose files and list are in place; returns the reason where the database refuses.

    The segment that was open is not held whole: writers may have added to it since. A role that only reads may export,
    and the export is complete without the note.
    """
    row = {
        "target": target,
        "taken_at": made.taken_at,
        "segment_id": made.ends.segment - 1,
        "log_offset": made.ends.log_offset,
        "rows": msgspec.json.encode(made.rows).decode(),
        "checksum": hashlib.sha256(manifest.encoded(made)).hexdigest(),
    }
    try:
        with connections.connect(conninfo) as broker:
            broker.execute(exports.NOTE_EXPORT.sql(), row)
            broker.execute(exports.FORGET_EXPORTS.sql(), {"max_rows": exports.MAX_KEPT})
    except psycopg.Error as problem:
        return str(problem).partition("\n")[0]
    return None


def differs(broker: Connection, place: Place, made: Manifest) -> Iterator[str]:
    """A sentence where the list of the files is another one than the broker noted when the export was finished.

    The list has the checksum of each file, so files that were changed together with it are found by its own. The broker
    keeps one note for each folder: where it has none of this moment there is nothing to compare with.
    """
    there = hashlib.sha256(place.read(manifest.NAME)).hexdigest()
    noted = [row.checksum for row in read(broker, FIND_NOTED_LIST, {"taken_at": made.taken_at})]
    if noted and there not in noted:
        yield f"{manifest.NAME} was changed: its checksum is not the one that the broker noted when it was written."
