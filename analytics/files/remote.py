"""Exports and reports in a folder behind a URL.

Files are added in place; the manifest, or the reports' marker, is written last and makes them complete.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types

from analytics import connections
from analytics.connections import Connection
from analytics.errors import ExportUnderWay, FolderRefused
from analytics.files import manifest, parts
from analytics.files.folder import EXPORT, Contents
from analytics.files.hadoop import Hadoop
from analytics.files.manifest import Manifest
from analytics.files.place import Local
from store.db.locks import TRY_LOCK_NAME

# The file that exists while the first export to a folder is under way, or after it was killed: then no other export has
# files in the folder.
BEGUN = "_begun.json"


class Marker(msgspec.Struct, frozen=True):
    """The file that marks a first export under way, with the database that is exported."""

    database: str
    kind: str = "mqbroker export that was begun"


@dataclass(frozen=True, slots=True)
class Draft:
    """An unfinished export: its folder, the session that holds the folder's lock, and the earlier manifest."""

    place: Hadoop
    holder: Connection
    earlier: bytes | None

    def commit(self, made: Manifest) -> None:
        """Writes the manifest `made`, then removes the files that `made` does not list.

        Raises ExportUnderWay and leaves the earlier manifest if an export of another database was written in between.
        """
        # Raises an error if the session has ended, because the lock on the folder ended with the session.
        _take(self.holder, self.place)
        there = set(self.place.files())
        if _manifest(self.place) != self.earlier or any(part.path not in there for part in made.parts):
            raise ExportUnderWay(f"Another export wrote to {self.place} meanwhile: give another folder.")
        manifest.write(self.place, made)
        parts.sweep(self.place, made.parts)
        if BEGUN in there:
            self.place.remove(BEGUN)


@contextmanager
def draft(place: Hadoop, conninfo: str) -> Iterator[Draft]:
    """Locks the folder for one export, and removes files that a killed export left there.

    PostgreSQL releases the lock when the session ends, also if the export is killed. Raises FolderRefused, or
    ExportUnderWay.
    """
    with connections.connect(conninfo) as holder:
        if not _take(holder, place):
            raise ExportUnderWay(f"Another export to {place} is under way: wait for it, or give another folder.")
        earlier = _manifest(place)
        _begin(place, earlier, connections.database(holder))
        try:
            yield Draft(place, holder, earlier)
        except Exception:
            # The caller must see the original failure. Files that cannot be removed now are removed by the next export.
            with suppress(OSError, Py4JError):
                _clear(place)
            raise


def _begin(place: Hadoop, earlier: bytes | None, database: str) -> None:
    _require_replaceable(place, earlier, database)
    if earlier is None:
        place.write(BEGUN, msgspec.json.encode(Marker(database)))
    _clear(place)


def _clear(place: Hadoop) -> None:
    """Removes files that belong to no export. Files of an export in another format are kept until they are replaced."""
    made = manifest.read(place)
    if made or _manifest(place) is None:
        parts.sweep(place, made.parts if made else ())


def _require_replaceable(place: Hadoop, earlier: bytes | None, database: str) -> None:
    names = place.names()
    if earlier is None and names and not _is_begun(place, names, database):
        raise FolderRefused(f"{place} holds {min(names)} and no export of this database: {EXPORT.way_out}.")
    if earlier is not None and not manifest.is_of(earlier, EXPORT.kind):
        raise FolderRefused(f"{place} holds {manifest.NAME} and no export: {EXPORT.way_out}.")
    strange = {name for name in names - EXPORT.names - {BEGUN} if name != f".{manifest.NAME}.unfinished"}
    if strange:
        raise FolderRefused(f"{place} holds {min(strange)} beside an export: {EXPORT.way_out}.")


def _is_begun(place: Hadoop, names: set[str], database: str) -> bool:
    with suppress(msgspec.DecodeError):
        return BEGUN in names and msgspec.json.decode(place.read(BEGUN), type=Marker) == Marker(database)
    return False


def _manifest(place: Hadoop) -> bytes | None:
    try:
        return place.read(manifest.NAME)
    except FileNotFoundError:
        return None


def _take(holder: Connection, place: Hadoop) -> bool:
    [taken] = connections.read(holder, TRY_LOCK_NAME, {"name": f"mqbroker export to {place}"})
    return taken


def require_reports(place: Hadoop, contents: Contents) -> None:
    """Raises FolderRefused unless the folder is empty or holds earlier reports or leftovers of a killed command."""
    names = place.names()
    strange = names - contents.names - {BEGUN}
    if strange or (names and not _is_ours(place, names, contents)):
        raise FolderRefused(f"{place} holds {min(strange or names)} and no {contents.name}: {contents.way_out}.")


def put(finished: Path, place: Hadoop, contents: Contents) -> None:
    """Writes the finished reports and finally their marker, then removes the earlier reports.

    Until then, a reader of the folder may see both. Raises FolderRefused if other files have come into the folder
    meanwhile.
    """
    require_reports(place, contents)
    earlier = place.files()
    place.write(BEGUN, f'{{"kind": "{contents.kind} that was begun"}}\n'.encode())
    made = Local(finished)
    new = [path for path in made.files() if not Path(path).name.startswith(".") and path != contents.marker]
    for path in (*new, contents.marker):
        if "/" in path:
            # A new name, so that no reader has the file open.
            with place.created(path) as created:
                created.write(made.read(path))
        else:
            place.write(path, made.read(path))
    for path in {*earlier, BEGUN}.difference(new, [contents.marker]):
        place.remove(path)


def _is_ours(place: Hadoop, names: set[str], contents: Contents) -> bool:
    return BEGUN in names or (contents.marker in names and manifest.is_of(place.read(contents.marker), contents.kind))
