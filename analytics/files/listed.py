"""The list of cells of an export of several cells. Each cell's export lies in its own folder `cell=NAME`."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from analytics.errors import FolderRefused
from analytics.files import manifest
from analytics.files.folder import EXPORT, Contents
from analytics.files.hadoop import Place

NAME = "installation.json"
KIND = "mqbroker export of cells"
FORMAT = 1


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the cells in an export, including cells that were removed since."""

    kind: str = KIND
    format: int = FORMAT
    cells: list[str]


def of_cell(name: str) -> str:
    """The name of the folder of a cell's export. Readers see it as a column `cell`."""
    return f"cell={name}"


def read(place: Place) -> list[str] | None:
    """The cells whose exports a folder holds; None if the folder holds the export of one database, or nothing.

    Raises FolderRefused if the list of cells cannot be read.
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
    """The folders of the exports in a folder, by cell name. If the folder is itself one export, its name is empty."""
    names = read(place)
    return {"": place} if names is None else {name: place.within(of_cell(name)) for name in names}


def write(place: Place, names: Iterable[str]) -> None:
    """Writes the list of cells before their exports, so that a reader can see that a cell's export is missing."""
    cells = list(names)
    if read(place) != cells:
        place.write(NAME, msgspec.json.encode(Cells(cells=cells)))


def contents(target: Path, names: Iterable[str]) -> Contents:
    """The names that a local folder may contain if an export of these cells is to be written to it.

    The export of a single database is also allowed: `adopt` makes it the export of the control.
    """
    is_of_one = (target / EXPORT.marker).exists() and not (target / NAME).exists()
    marker, kind = (EXPORT.marker, EXPORT.kind) if is_of_one else (NAME, KIND)
    return Contents("an", "export", marker, kind, EXPORT.names | known(names))


def known(names: Iterable[str]) -> frozenset[str]:
    """The names that may be in a folder with the exports of these cells, including files of a killed command."""
    folders = [of_cell(name) for name in names]
    return frozenset(
        (NAME, f".{NAME}.unfinished", f".{NAME}.crc", *folders, *(f".{one}.unfinished" for one in folders))
    )


def adopt(target: Path, name: str) -> None:
    """Moves the export of a single database from the folder itself into the folder of a cell.

    Can be repeated after a kill. The list of cells already exists. The manifest moves last: if it is no longer in the
    outer folder, the move is complete.
    """
    if not (target / manifest.NAME).exists():
        return
    (target / of_cell(name)).mkdir(exist_ok=True)
    there = [path for path in target.iterdir() if path.name in EXPORT.names]
    for path in sorted(there, key=lambda path: path.name == manifest.NAME):
        path.rename(target / of_cell(name) / path.name)
