"""Writes files to the disk in small steps, so that they survive a power failure and do not delay the broker.

Otherwise the kernel writes all bytes at once, half a minute later, and each commit of the broker waits behind them: 20
ms for 60 MB.
"""

import io
import os
import sys
from pathlib import Path

import pyarrow

# A disk writes this many bytes in less time than a commit takes.
STEP_BYTES = 1024 * 1024


class PacedFile(io.FileIO):
    """A new file whose bytes are on the disk when it is closed. Raises OSError as other files do."""

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
