"""Files that go to the disk in small steps while they are written, and are there after a power failure.

Without the steps the kernel writes all of them at once, half a minute later, and every commit of the broker's meanwhile
waits behind them: 20 ms for 60 MB.
"""

import io
import os
import sys
from pathlib import Path

import pyarrow

# A disk writes it in less time than a commit takes.
STEP_BYTES = 1024 * 1024


class PacedFile(io.FileIO):
    """A new file; its bytes are on the disk when it is closed. Raises OSError as any other."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb")
        self._begun = self._written = 0

    def write(self, data: object, /) -> int:
        """Writes all bytes; those of each full step are on their way to the disk before the next ones."""
        left = memoryview(data).cast("B")  # type: ignore[arg-type]  # 3.11 has no type for what has a buffer
        size = len(left)
        while left:
            # Up to the end of a step: a single write of all would be one step, and may be cut short.
            written = super().write(left[: STEP_BYTES - (self._written - self._begun)])
            left = left[written:]
            self._written += written
            if self._written - self._begun == STEP_BYTES:
                _begin_writing(self.fileno(), self._begun, STEP_BYTES)
                self._begun = self._written
        return size

    def close(self) -> None:
        """Returns when all bytes are on the disk."""
        if self.closed:
            return
        try:
            os.fsync(self.fileno())
        finally:
            super().close()


def created(path: Path) -> pyarrow.NativeFile:
    """A new file as Arrow writes to it."""
    return pyarrow.PythonFile(PacedFile(path), mode="w")


def settle(folder: Path) -> None:
    """Has a folder on the disk with all names in it, and with those files that Java wrote."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            # A second name is a link to a file of an earlier export, which is there.
            if (Path(parent) / name).stat().st_nlink == 1:
                sync(Path(parent) / name)
        sync(Path(parent))


def sync(path: Path) -> None:
    """Has a file, or the names in a folder, on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _begin_writing(file: int, start: int, size: int) -> None:
    """Linux begins to write bytes that it is to forget, and forgets those only that are written by then."""
    if sys.platform == "linux":
        os.posix_fadvise(file, start, size, os.POSIX_FADV_DONTNEED)
