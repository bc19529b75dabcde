"""Keeps the tables of other formats beside the files of an export: what the list has is what their next version has.

They are committed in the folder that is put in the target's place as a whole, so a reader has both as they were or both
as they are now, also where the export is killed between its data and a commit.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from analytics.errors import ExtraMissing, FolderRefused
from analytics.files.lake import delta, iceberg
from analytics.files.manifest import TABLES, Manifest

PARQUET = "parquet"
FORMATS = (PARQUET, "delta", "iceberg")
COMMITS: dict[str, Callable[[Path, Path, Manifest], None]] = {"delta": delta.commit, "iceberg": iceberg.commit}
PACKAGES = {"delta": "deltalake", "iceberg": "pyiceberg"}


def require(wanted: str, target: Path | str) -> None:
    """Raises FolderRefused for tables behind a URL, ExtraMissing where the format's package is not installed."""
    if wanted == PARQUET:
        return
    if not isinstance(target, Path):
        raise FolderRefused(f"Tables of {wanted} are written to a folder of this machine, and {target} is a URL.")
    if find_spec(PACKAGES[wanted]) is None:
        raise ExtraMissing(f"{PACKAGES[wanted]} is not installed: the extra `analytics` has it.")


def kept(export: Path) -> set[str]:
    """The formats that an export has tables of: each next one adds to them, whether or not it is asked for again."""
    deltas = any((export / table / delta.LOG).is_dir() for table in TABLES)
    return ({"delta"} if deltas else set()) | ({"iceberg"} if (export / iceberg.FOLDER).is_dir() else set())


def commit(new: Path, target: Path, wanted: str, made: Manifest) -> None:
    """Commits a version with the files of the list to each table of the formats that are kept or wanted.

    `new` is the folder that takes the place of `target`, whose logs it gets first.
    """
    formats = kept(target) | ({wanted} - {PARQUET})
    for each in sorted(formats):
        require(each, target)
        _carry(target, new, delta.folders() if each == "delta" else (iceberg.FOLDER,))
        COMMITS[each](new, target, made)


def _carry(earlier: Path, new: Path, folders: Sequence[str]) -> None:
    """Links what is written once, and copies what is written to."""
    for folder in folders:
        for file in (path for path in (earlier / folder).rglob("*") if path.is_file()):
            to = new / file.relative_to(earlier)
            to.parent.mkdir(parents=True, exist_ok=True)
            if file.name == iceberg.CATALOG:
                shutil.copy2(file, to)
            else:
                os.link(file, to)
