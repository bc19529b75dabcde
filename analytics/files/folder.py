"""Puts a finished export in its target in one step: a reader sees either the earlier export or the new export."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from analytics.errors import ExportUnderWay, FolderRefused
from analytics.files import place
from analytics.files.manifest import KIND, TABLES, is_of
from analytics.files.manifest import NAME as MANIFEST


@dataclass(frozen=True, slots=True)
class Contents:
    """Describes a kind of folder: its name in sentences, the file that marks it, and the names allowed in it."""

    article: str
    name: str
    marker: str
    kind: str
    names: frozenset[str]

    @property
    def way_out(self) -> str:
        return f"give a new or an empty folder, or one that holds {self.article} {self.name} and nothing else"


# The checksum file that Hadoop writes beside the manifest when the target of an export is a `file:` URL.
CHECKSUM = f".{MANIFEST}.crc"
EXPORT = Contents("an", "export", MANIFEST, KIND, frozenset((MANIFEST, CHECKSUM, "_iceberg", *TABLES)))


@contextmanager
def workspace(target: Path, contents: Contents = EXPORT) -> Iterator[Path]:
    """An empty folder beside the target, on the same disk, for this command alone. It is deleted after the block.

    A killed command leaves the folder behind; the next command with the same target clears it. Raises FolderRefused, or
    ExportUnderWay while another export to the target runs.
    """
    require_replaceable(target, contents)
    folder = target.with_name(f".{target.name}.unfinished")
    lock = _locked(folder, target, contents)
    try:
        _empty(folder, target)
        yield folder
    finally:
        _empty(folder, target)
        # A Java process that is still ending may keep a file open in the folder. Then the folder stays, and the next
        # export removes it.
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def require_replaceable(target: Path, contents: Contents = EXPORT) -> None:
    """Raises FolderRefused unless the target is missing or holds only earlier contents of the same kind."""
    if target.is_mount():
        raise FolderRefused(f"{target} is a mount point and cannot be replaced as a whole: give a folder in it.")
    if target.exists() and not target.is_dir():
        raise FolderRefused(f"{target} is a file: {contents.way_out}.")
    names = {path.name for path in target.iterdir()} if target.exists() else set()
    if names and not _holds(target, contents):
        raise FolderRefused(f"{target} holds {min(names)} and no {contents.name}: {contents.way_out}.")
    strange = names - contents.names
    if strange:
        raise FolderRefused(f"{target} holds {min(strange)} beside an earlier {contents.name}: {contents.way_out}.")


def put(finished: Path, target: Path, workspace: Path, contents: Contents = EXPORT) -> None:
    """Moves finished contents to the target and flushes them to the disk, before the broker may drop the exported rows.

    If the command is killed between the two renames, the earlier contents are in the workspace and the next command
    puts them back. Raises FolderRefused if other files have come into the target meanwhile.
    """
    require_replaceable(target, contents)
    place.settle(finished)
    if target.exists():
        target.rename(_earlier(workspace))
    finished.rename(target)
    place.sync(target.parent)


def _locked(folder: Path, target: Path, contents: Contents) -> int:
    """Locks the workspace folder and returns the lock.

    If an earlier command has just removed the folder, locks the new folder.
    """
    lock = _opened(folder, target)
    try:
        # The kernel releases the lock when the process ends, also by a kill.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        os.close(lock)
        raise ExportUnderWay(
            f"Another {contents.name} to {target} is under way: wait for it, or give another folder."
        ) from problem
    with suppress(FileNotFoundError):
        if os.path.samestat(folder.stat(), os.fstat(lock)):
            return lock
    os.close(lock)
    return _locked(folder, target, contents)


def _opened(folder: Path, target: Path) -> int:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with suppress(FileExistsError):
                folder.mkdir()
            with suppress(FileNotFoundError):
                return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as problem:
        raise FolderRefused(f"Nothing can be written beside {target}: {problem.strerror}.") from problem


def _empty(folder: Path, target: Path) -> None:
    if _earlier(folder).exists() and not target.exists():
        _earlier(folder).rename(target)
    for path in folder.iterdir():
        shutil.rmtree(path, ignore_errors=True)


def _earlier(workspace: Path) -> Path:
    return workspace / "earlier"


def _holds(folder: Path, contents: Contents) -> bool:
    try:
        return is_of((folder / contents.marker).read_bytes(), contents.kind)
    except OSError:
        return False
