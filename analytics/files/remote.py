"""An export to a folder behind a URL: files are added in place; the manifest, written last, completes the export."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types

from analytics import connections
from analytics.connections import Connection
from analytics.errors import ExportUnderWay, FolderRefused
from analytics.files import manifest, parts
from analytics.files.folder import EXPORT
from analytics.files.hadoop import Hadoop
from analytics.files.manifest import Manifest
from store.db.locks import TRY_LOCK_NAME

# There while the first export to a folder is under way, and after it was killed: the files beside it are of no other.
BEGUN = "_begun.json"


class Marker(msgspec.Struct, frozen=True):
    """The marker of a first export, with the database that it is of."""

    database: str
    kind: str = "mqbroker export that was begun"


@dataclass(frozen=True, slots=True)
class Draft:
    """An export in the making: its folder, the session that holds the folder's lock, and the manifest that is there."""

    place: Hadoop
    holder: Connection
    earlier: bytes | None

    def commit(self, made: Manifest) -> None:
        """Puts the manifest in its place, and removes what it replaces.

        Raises ExportUnderWay, with the manifest as it was, when an export of another database came in between.
        """
        # Raises when the session is gone, and the lock with it.
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
    """The folder, for one export at a time: PostgreSQL ends the lock with the session, also of a killed one.

    What such an export left is removed. Raises FolderRefused, or ExportUnderWay.
    """
    with connections.connect(conninfo) as holder:
        if not _take(holder, place):
            raise ExportUnderWay(f"Another export to {place} is under way: wait for it, or give another folder.")
        earlier = _manifest(place)
        _begin(place, earlier, connections.database(holder))
        try:
            yield Draft(place, holder, earlier)
        except Exception:
            # The failure is what the caller must see. What cannot be removed now is removed by the next export.
            with suppress(OSError, Py4JError):
                _clear(place)
            raise


def _begin(place: Hadoop, earlier: bytes | None, database: str) -> None:
    _require_replaceable(place, earlier, database)
    if earlier is None:
        place.write(BEGUN, msgspec.json.encode(Marker(database)))
    _clear(place)


def _clear(place: Hadoop) -> None:
    """Removes what is of no export, but keeps the files of one in another format until it is replaced."""
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
