"""The disk: files of an export go there in small steps, and are there before the export takes its place."""

import ctypes
import os
from pathlib import Path

import pytest

from analytics.files import folder, place
from analytics.files.place import STEP_BYTES, PacedFile
from tests.analytics.parquet import sign

STEPS = 8
# The same number on every machine, since Linux 6.5.
CACHESTAT = 451


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("there", "dirty", "on_their_way", "evicted", "recent"))


def unwritten_bytes(path: Path) -> int:
    """The bytes of a file that no write to the disk has begun for. Skips the test where the kernel does not say it."""
    pages = _Pages()
    with path.open("rb") as opened:
        asked = ctypes.byref(_Range(0, 0)), ctypes.byref(pages), 0
        if ctypes.CDLL(None).syscall(CACHESTAT, opened.fileno(), *asked):
            pytest.skip("this kernel does not say which pages of a file are written")
    return int(pages.dirty) * os.sysconf("SC_PAGE_SIZE")


def test_a_file_is_written_to_the_disk_in_steps_while_it_grows(tmp_path: Path) -> None:
    with PacedFile(tmp_path / "file") as file:
        file.write(bytes(STEPS * STEP_BYTES))

        # Of each step the last page may be shared with the next one.
        assert unwritten_bytes(tmp_path / "file") < 2 * STEP_BYTES


def test_a_closed_file_is_on_the_disk(tmp_path: Path) -> None:
    with PacedFile(tmp_path / "file") as file:
        file.write(b"less than a step")

    assert (tmp_path / "file").read_bytes() == b"less than a step"
    assert unwritten_bytes(tmp_path / "file") == 0


def test_arrow_writes_all_bytes_whatever_the_steps(tmp_path: Path) -> None:
    first, second = bytes(range(256)) * 4096, b"b" * (3 * STEP_BYTES + 7)

    with place.created(tmp_path / "file") as file:
        file.write(b"a")
        file.write(first)
        file.write(second)

    assert (tmp_path / "file").read_bytes() == b"a" + first + second


def test_an_export_is_on_the_disk_when_it_is_in_its_place(tmp_path: Path) -> None:
    target = tmp_path / "export"
    with folder.workspace(target) as workspace:
        made = workspace / "export"
        (made / "messages").mkdir(parents=True)
        # As Java writes it: to memory, and no further.
        (made / "messages" / "part").write_bytes(bytes(STEP_BYTES))
        sign(made)

        folder.put(made, target, workspace)

    assert [unwritten_bytes(path) for path in target.rglob("*") if path.is_file()] == [0, 0]
