"""Notes a finished export in the broker's database, for retention, metrics, the console and verification."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import psycopg
from django.conf import settings

from analytics import connections
from analytics.connections import Connection, read
from analytics.files import manifest
from analytics.files.hadoop import Place
from analytics.files.manifest import Manifest
from analytics.rows import NotedList
from store.db.statements import Statement
from store.segments import exports

FIND_NOTED_LISTS = Statement(__file__, "find_noted_lists", NotedList)
CHANGED = f"{manifest.NAME} was changed: its checksum is not the one that the broker noted when it was written."
UNNOTED = "Not compared with the broker's note: it has none of this folder, nor of this list."


def names_of(target: Path | str) -> Sequence[str]:
    """The names under which the broker may have noted an export to a folder. The name for a new export is first.

    Retention waits for the nightly export by the name that is in the setting.
    """
    nightly: str = settings.EXPORT_NIGHTLY_TO
    named = urlsplit(str(target))
    path = Path(unquote(named.path)) if named.scheme == "file" else Path(target)
    if "://" in str(target) and named.scheme != "file":
        return [str(target)]
    own = [nightly] if nightly and Path(nightly).absolute().resolve() == path else []
    return [*own, str(target), str(path), path.as_uri()]


def note(conninfo: str, target: str, made: Manifest) -> str | None:
    """Notes an export whose files and manifest are in place. Returns the reason if the database refuses the note.

    The segment that was open is not noted as exported completely, because writers may have added to it since. A role
    that may only read can export as well; the export is complete without the note.
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


def compared(broker: Connection, place: Place, made: Manifest, target: Path | str | None) -> str | None:
    """Compares the manifest with the broker's note of it: None if they agree, else CHANGED or UNNOTED.

    The manifest has the checksum of each file. If someone changed files and manifest together, the note of the
    manifest's own checksum shows it. The note is looked up by the folder, not by what the manifest says. A manifest
    that was copied from there is found by its checksum, a manifest that was changed is found by its moment. Without a
    `target`, the place is the folder, and a broker that has noted no export at all is not reported.
    """
    there = hashlib.sha256(place.read(manifest.NAME)).hexdigest()
    noted = read(broker, FIND_NOTED_LISTS)
    names = names_of(target or str(place))
    of_folder = [row for row in noted if row.target in names]
    if there in {row.checksum for row in of_folder or noted}:
        return None
    known = of_folder or [row for row in noted if row.taken_at == _moment(made)]
    if not noted and target is None:
        return None
    return CHANGED if known else UNNOTED


def _moment(made: Manifest) -> datetime | None:
    try:
        return datetime.fromisoformat(made.taken_at)
    except ValueError:
        return None
