"""A disk of its own for the tables of a server, which can be full at once."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg

SIZE = "8g"
# The writers fill what is free between the look and the new size.
TRIES = 10


class SmallDisk:
    """A tmpfs; within `with` it is mounted. It holds in memory what is written, not its size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> "SmallDisk":
        self.folder.mkdir(mode=0o777)
        run("mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0777", "tmpfs", str(self.folder))
        return self

    def __exit__(self, *_: object) -> None:
        run("umount", "--lazy", str(self.folder))

    def take_in(self, superuser_url: str, database: str) -> None:
        """Moves the tables of a database without connections here; PostgreSQL's log stays where it is."""
        tables = self.folder / "tables"
        tables.mkdir(mode=0o700)
        owner = Path(self.folder).parent / "postgres" / "postgres"
        os.chown(tables, owner.stat().st_uid, owner.stat().st_gid)
        with psycopg.connect(superuser_url.rpartition("/")[0] + "/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{tables}'".encode())
            connection.execute(f"ALTER DATABASE {database} SET TABLESPACE small".encode())

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Nothing more can be written within the block."""
        for _ in range(TRIES):
            state = os.statvfs(self.folder)
            used = (state.f_blocks - state.f_bfree) * state.f_frsize
            if self._resize(str(used)):
                break
        else:
            raise AssertionError("the disk grows faster than it can be made small")
        yield
        assert self._resize(SIZE)

    def _resize(self, size: str) -> bool:
        words = ["mount", "-o", f"remount,size={size}", str(self.folder)]
        return subprocess.run(words, capture_output=True).returncode == 0


def mounted(folder: Path, opened: contextlib.ExitStack) -> SmallDisk | None:
    """A disk until the stack is closed; None where this process may not mount one."""
    try:
        return opened.enter_context(SmallDisk(folder))
    except (OSError, subprocess.CalledProcessError):
        return None


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
