"""Notes a finished export in the broker's database, for retention, metrics and the console."""

import msgspec
import psycopg

from analytics import connections
from analytics.files.manifest import Manifest
from store.segments import exports


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
    }
    try:
        with connections.connect(conninfo) as broker:
            broker.execute(exports.NOTE_EXPORT.sql(), row)
            broker.execute(exports.FORGET_EXPORTS.sql(), {"max_rows": exports.MAX_KEPT})
    except psycopg.Error as problem:
        return str(problem).partition("\n")[0]
    return None
