"""Where the files of an export lie: a folder of this machine, or one that Hadoop's FileSystem reaches."""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Protocol

import pyarrow

from analytics.files import paced


class Place(Protocol):
    """A folder of files; paths are relative to it, with slashes. What cannot be read or written is an OSError."""

    def within(self, folder: str) -> "Place":
        """A folder in this one."""

    def url(self, path: str) -> str:
        """A file or a folder, as Spark names it."""

    def files(self, folder: str = "") -> list[str]:
        """The paths of all files below a folder, in order; none where there is no such folder."""

    def size(self, path: str) -> int:
        """The bytes of a file."""

    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    def write(self, path: str, content: bytes) -> None:
        """Writes a small file: a reader has it whole, as it was before or as it is now."""

    def opened(self, path: str) -> pyarrow.NativeFile:
        """A file to read from, at any offset."""

    def created(self, path: str) -> pyarrow.NativeFile:
        """A new file to write to."""

    def checksum(self, path: str) -> str:
        """The SHA-256 of a file's bytes."""

    def take(self, path: str, earlier: "Place") -> None:
        """Has a file of an earlier export as well."""

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with all that is in it."""


class Local:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def within(self, folder: str) -> "Local":
        return Local(self.folder / folder)

    def url(self, path: str) -> str:
        """With the scheme: where Hadoop is configured, a path alone is one of its default file system."""
        return f"file://{self.folder / path}"

    def files(self, folder: str = "") -> list[str]:
        found = (self.folder / folder).rglob("*")
        return sorted(str(path.relative_to(self.folder)) for path in found if path.is_file())

    def size(self, path: str) -> int:
        return (self.folder / path).stat().st_size

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        unfinished = self.folder / f".{path}.unfinished"
        unfinished.write_bytes(content)
        unfinished.replace(self.folder / path)

    def opened(self, path: str) -> pyarrow.NativeFile:
        return pyarrow.OSFile(str(self.folder / path), "rb")

    def created(self, path: str) -> pyarrow.NativeFile:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        return paced.created(self.folder / path)

    def checksum(self, path: str) -> str:
        with (self.folder / path).open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    def take(self, path: str, earlier: Place) -> None:
        """By a link, which takes no time and no room; by a copy where the disk has no links."""
        if not isinstance(earlier, Local):
            raise TypeError(f"{earlier} is no folder of this machine.")
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(earlier.folder / path, self.folder / path)
        except OSError:
            shutil.copy2(earlier.folder / path, self.folder / path)

    def remove(self, path: str) -> None:
        if (self.folder / path).is_dir():
            shutil.rmtree(self.folder / path)
        else:
            (self.folder / path).unlink()
