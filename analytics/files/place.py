"""A folder of this machine as the place of an export, and files that are written to the disk in small steps."""

import hashlib
import io
import os
import shutil
import sys
from pathlib import Path

import pyarrow


class Local:
    """A folder of this machine. Paths are relative to it and have slashes. A failed read or write raises OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def within(self, folder: str) -> "Local":
        """The subfolder with this name."""
        return Local(self.folder / folder)

    def url(self, path: str) -> str:
        """The path with the scheme `file`: without it Spark would look for the path in Hadoop's default file system."""
        return f"file://{self.folder / path}"

    def files(self, folder: str = "") -> list[str]:
        """The paths of all files below a folder, sorted; empty if the folder does not exist."""
        found = (self.folder / folder).rglob("*")
        return sorted(str(path.relative_to(self.folder)) for path in found if path.is_file())

    def size(self, path: str) -> int:
        """The size of a file in bytes."""
        return (self.folder / path).stat().st_size

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return (self.folder / path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        """Writes a small file in one step: a reader sees either the former content or the new content."""
        unfinished = self.folder / f".{path}.unfinished"
        unfinished.write_bytes(content)
        unfinished.replace(self.folder / path)

    def opened(self, path: str) -> pyarrow.NativeFile:
        """A file opened for reading, at any offset."""
        return pyarrow.OSFile(str(self.folder / path), "rb")

    def created(self, path: str) -> pyarrow.NativeFile:
        """A new file opened for writing."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        return created(self.folder / path)

    def checksum(self, path: str) -> str:
        """The SHA-256 of a file's bytes."""
        with (self.folder / path).open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    def take(self, path: str, earlier: "Local") -> None:
        """Links the file, which takes no time and no space; copies it if the file system has no links."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(earlier.folder / path, self.folder / path)
        except OSError:
            shutil.copy2(earlier.folder / path, self.folder / path)

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with its content."""
        if (self.folder / path).is_dir():
            shutil.rmtree(self.folder / path)
        else:
            (self.folder / path).unlink()


# A disk writes this many bytes in less time than a commit takes.
STEP_BYTES = 1024 * 1024


class PacedFile(io.FileIO):
    """A new file that is written to the disk in small steps, and is on the disk when it is closed.

    Otherwise the kernel writes all bytes at once, half a minute later, and each commit of the broker waits behind them:
    20 ms for 60 MB.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb")

    def write(self, data: object, /) -> int:
        """Writes all bytes. After each full step, the kernel is asked to start writing it to the disk."""
        left = memoryview(data).cast("B")  # type: ignore[arg-type]  # 3.11 has no type for what has a buffer
        size = len(left)
        while left:
            # At most to the end of the step: one write of all bytes would be one long step, and may be incomplete.
            left = left[super().write(left[: STEP_BYTES - self.tell() % STEP_BYTES]) :]
            # Linux starts writing a range to the disk when it is asked to drop the range from its cache.
            if self.tell() % STEP_BYTES == 0 and sys.platform == "linux":
                os.posix_fadvise(self.fileno(), self.tell() - STEP_BYTES, STEP_BYTES, os.POSIX_FADV_DONTNEED)
        return size

    def close(self) -> None:
        """Closes the file when all bytes are on the disk."""
        if self.closed:
            return
        try:
            os.fsync(self.fileno())
        finally:
            super().close()


def created(path: Path) -> pyarrow.NativeFile:
    """A new paced file, as an object that Arrow can write to."""
    return pyarrow.PythonFile(PacedFile(path), mode="w")


def settle(folder: Path) -> None:
    """Flushes a folder to the disk: all its names, and the files in it that Java wrote."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            # A file with a second name is a link to a file of an earlier export, which is already on the disk.
            if (Path(parent) / name).stat().st_nlink == 1:
                sync(Path(parent) / name)
        sync(Path(parent))


def sync(path: Path) -> None:
    """Flushes a file, or the names in a folder, to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
