"""Brings a database into the state that this checkout's code needs, and keeps a note of it."""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.errors import ServerFailed
from mqbroker.embedded.processes import launch
from mqbroker.embedded.waiting import Say, silence, wait


@dataclass(frozen=True)
class Access:
    """The API key and the console password that this start created, to be shown once; None if the user gave them or an
    earlier start created them.
    """

    api_key: str | None = None
    console_user: str | None = None
    console_password: str | None = None


def run(environment: Mapping[str, str], log: Path, api_key: str | None, cells: int = 1, say: Say = silence) -> Access:
    """Migrates the database, creates a missing API key and console user, and makes databases of the server cells.

    Raises ServerFailed with the last line of the log.
    """
    given = {"MQBROKER_API_KEY": api_key} if api_key else {}
    words = ["--cells", str(cells)] if cells > 1 else []
    with (
        log.open("w") as opened,
        subprocess.Popen(
            launch.command("stay", SIGKILL, *commands.manage("prepare", *words)),
            env={**environment, **given},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=opened,
            text=True,
        ) as preparing,
    ):
        try:
            # The output is one line, which fits into a pipe.
            wait(lambda: preparing.poll() is not None, "Preparing the database", say)
        except BaseException:
            preparing.kill()
            raise
        printed, _ = preparing.communicate()
    if preparing.returncode != 0:
        reason = (log.read_text().splitlines() or [f"exit code {preparing.returncode}"])[-1]
        raise ServerFailed("The database's preparation", reason, log)
    return Access(**json.loads(printed.splitlines()[-1]))


class Joined:
    """A file in the folder of a private database that says how many cells its server has. The file also has the
    server's port at that time, which is part of the cells' URLs.
    """

    def __init__(self, database_folder: Path, port: int) -> None:
        self._file = database_folder / "cells"
        self._port = port

    def count(self, wanted: int | None) -> int:
        """The number of cells to make, with the control: the wanted number, but at least the existing number."""
        return max(self._noted()[0], wanted or 1)

    def is_complete(self, wanted: int | None) -> bool:
        """Whether all cells have joined with their current URLs."""
        noted, port = self._noted()
        return noted >= (wanted or 1) and port == self._port

    def keep(self, cells: int) -> None:
        """Writes the number of cells that have joined. If the control is the only cell, removes the file."""
        if cells > 1:
            self._file.write_text(f"{cells} {self._port}")

    def _noted(self) -> tuple[int, int]:
        try:
            cells, port = map(int, self._file.read_text().split())
        except FileNotFoundError:
            return 1, self._port
        return cells, port


class Memory:
    """A note in a private database's folder of the code for which the database was prepared.

    With an up-to-date note Django need not be started to read the database, which would take 1.5 s, half of a second
    start.
    """

    def __init__(self, database_folder: Path) -> None:
        self._file = database_folder / "prepared_for"

    def is_up_to_date(self) -> bool:
        """Whether the note names the current migrations."""
        try:
            return self._file.read_text() == fingerprint()
        except FileNotFoundError:
            return False

    def keep(self) -> None:
        self._file.write_text(fingerprint())

    def forget(self) -> None:
        """Removes the note, before a command that may change the tables."""
        self._file.unlink(missing_ok=True)


def fingerprint() -> str:
    """A digest of the broker's migrations and of the migrations of installed packages, whose versions the lock file
    gives.
    """
    digest = hashlib.sha256()
    for file in [ROOT / "requirements.lock", *migrations()]:
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def migrations() -> list[Path]:
    """The files of the migrations of all Django apps."""
    found = (path for depth in ("*", "*/*") for path in ROOT.glob(f"{depth}/migrations/**/*.*"))
    return sorted(path for path in found if path.suffix in (".py", ".sql"))
