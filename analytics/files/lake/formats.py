"""Keeps tables of other formats beside the files of an export: a version has the files of the manifest.

The versions are committed in the new folder before it replaces the target. So a reader sees files and tables either all
as before or all new, also when the export is killed between data and commit.
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
COMMITS: dict[str, Callable[[Path, Path, Manifest], None]] = {"delta": delta.commit, "iceberg": iceberg.commit}
PACKAGES = {"delta": "deltalake", "iceberg": "pyiceberg"}


def require(wanted: str, target: Path | str) -> None:
    """Raises FolderRefused for tables behind a URL, ExtraMissing if the package of the format is not installed."""
    if wanted == PARQUET:
        return
    if not isinstance(target, Path):
        raise FolderRefused(f"Tables of {wanted} are written to a folder of this machine, and {target} is a URL.")
    if find_spec(PACKAGES[wanted]) is None:
        raise ExtraMissing(f"{PACKAGES[wanted]} is not installed: the extra `analytics` has it.")


def kept(export: Path) -> set[str]:
    """The table formats that an export has. Later exports continue these formats without being asked."""
    deltas = any((export / table / delta.LOG).is_dir() for table in TABLES)
    return ({"delta"} if deltas else set()) | ({"iceberg"} if (export / iceberg.FOLDER).is_dir() else set())


def commit(new: Path, target: Path, wanted: str, made: Manifest) -> None:
    """Commits a new version of each table, in all formats that the export already has or that are requested.

    `new` is the folder that will replace `target`. The logs of the tables are first carried over from `target` to
    `new`.
    """
    formats = kept(target) | ({wanted} - {PARQUET})
    for each in sorted(formats):
        require(each, target)
        _carry(target, new, delta.folders() if each == "delta" else (iceberg.FOLDER,))
        COMMITS[each](new, target, made)


def _carry(earlier: Path, new: Path, folders: Sequence[str]) -> None:
    """Carries the folders over: links files that never change, copies files that will be written to."""
    for folder in folders:
        for file in (path for path in (earlier / folder).rglob("*") if path.is_file()):
            to = new / file.relative_to(earlier)
            to.parent.mkdir(parents=True, exist_ok=True)
            if file.name == iceberg.CATALOG:
                shutil.copy2(file, to)
            else:
                os.link(file, to)
