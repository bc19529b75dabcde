"""Reports behind a URL: files are added in place.

The marker is written last and says which export the reports are of.
"""

from pathlib import Path

from analytics.errors import FolderRefused
from analytics.files.folder import Contents
from analytics.files.hadoop import Hadoop
from analytics.files.manifest import is_of
from analytics.files.place import Local
from analytics.files.remote import BEGUN


def require_replaceable(place: Hadoop, contents: Contents) -> None:
    """Raises FolderRefused unless the folder is empty or holds only earlier reports and leftovers
    of a killed command.
    """
    names = place.names()
    strange = names - contents.names - {BEGUN}
    if strange or (names and not _is_ours(place, names, contents)):
        raise FolderRefused(f"{place} holds {min(strange or names)} and no {contents.name}: {contents.way_out}.")


def put(finished: Path, place: Hadoop, contents: Contents) -> None:
    """Writes the finished reports and finally their marker, then removes the earlier reports.

    Until then, a reader of the folder may see both. Raises FolderRefused if other files have come into the folder
    meanwhile.
    """
    require_replaceable(place, contents)
    earlier = place.files()
    place.write(BEGUN, f'{{"kind": "{contents.kind} that was begun"}}\n'.encode())
    made = Local(finished)
    new = [path for path in made.files() if not Path(path).name.startswith(".") and path != contents.marker]
    for path in (*new, contents.marker):
        if "/" in path:
            _copy(made, place, path)
        else:
            place.write(path, made.read(path))
    for path in {*earlier, BEGUN}.difference(new, [contents.marker]):
        place.remove(path)


def _copy(made: Local, place: Hadoop, path: str) -> None:
    """Copies a report to a file with a new name, so that no reader has it open."""
    with place.created(path) as created:
        created.write(made.read(path))


def _is_ours(place: Hadoop, names: set[str], contents: Contents) -> bool:
    return BEGUN in names or (contents.marker in names and is_of(place.read(contents.marker), contents.kind))
