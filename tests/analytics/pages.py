"""What of a file lies in memory only."""

import ctypes
import os
from pathlib import Path

import pytest

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
