"""The list of an export of several cells: whose exports the folder holds, each in a folder `cell=NAME` of its own."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from analytics.errors import FolderRefused
from analytics.files import manifest
from analytics.files.folder import EXPORT, Contents
from analytics.files.place import Place

NAME = "installation.json"
KIND = "mqbroker export of cells"
FORMAT = 1


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the cells that an export is of, those that were removed since included."""

    kind: str = KIND
    format: int = FORMAT
    cells: list[str]


def of_cell(name: str) -> str:
    """The folder of a cell's export: readers take its name for a column `cell`."""
    return f"cell={name}"


def read(place: Place) -> list[str] | None:
    """The cells whose exports a folder holds; None where it holds that of one database, or nothing.

    Raises FolderRefused for a list that is not understood.
    """
    try:
        found = msgspec.json.decode(place.read(NAME), type=Cells)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.DecodeError as problem:
        raise FolderRefused(f"{NAME} in {place} is not understood ({problem}): give a new folder.") from problem
    if (found.kind, found.format) != (KIND, FORMAT):
        raise FolderRefused(
            f"{NAME} in {place} is not understood ({found.kind!r} of format {found.format}): give a new folder."
        )
    return found.cells


def each(place: Place) -> dict[str, Place]:
    """The folders of the exports that a folder holds, by their cells; itself, by no name, where it holds one only."""
    names = read(place)
    return {"": place} if names is None else {name: place.within(of_cell(name)) for name in names}


def write(place: Place, names: Iterable[str]) -> None:
    """Writes the list, before the exports: a cell that was away has none then, and is known to lack it."""
    document = msgspec.json.encode(Cells(cells=list(names)))
    if _content(place) != document:
        place.write(NAME, document)


def contents(target: Path, names: Iterable[str]) -> Contents:
    """What a folder of this machine may hold to become, or to stay, one with the exports of these cells.

    The export of one database, too: `adopt` makes it that of the control.
    """
    is_of_one = (target / EXPORT.marker).exists() and not (target / NAME).exists()
    marker, kind = (EXPORT.marker, EXPORT.kind) if is_of_one else (NAME, KIND)
    return Contents("an", "export", marker, kind, EXPORT.names | known(names))


def known(names: Iterable[str]) -> frozenset[str]:
    """What lies in a folder with the exports of these cells: their folders, and what a killed command left."""
    folders = [of_cell(name) for name in names]
    return frozenset(
        (NAME, f".{NAME}.unfinished", f".{NAME}.crc", *folders, *(f".{one}.unfinished" for one in folders))
    )


def adopt(target: Path, name: str) -> None:
    """Makes the export of one database that lies in the folder itself that of a cell; begun again after a kill.

    The list of the cells is there already. The manifest moves last: what lacks one here was moved whole.
    """
    if not (target / manifest.NAME).exists():
        return
    (target / of_cell(name)).mkdir(exist_ok=True)
    there = [path for path in target.iterdir() if path.name in EXPORT.names]
    for path in sorted(there, key=lambda path: path.name == manifest.NAME):
        path.rename(target / of_cell(name) / path.name)


def _content(place: Place) -> bytes | None:
    try:
        return place.read(NAME)
    except FileNotFoundError:
        return None
