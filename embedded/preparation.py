"""Brings a database into the state that this checkout's code needs, and remembers that it is."""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL

from embedded import commands, launch
from embedded.commands import ROOT
from embedded.errors import ServerFailed


@dataclass(frozen=True)
class Access:
    """How to get in. What was given or an earlier start made is None: it is known, or was shown then."""

    api_key: str | None = None
    console_user: str | None = None
    console_password: str | None = None


def run(environment: Mapping[str, str], log: Path, api_key: str | None) -> Access:
    """Migrates, and makes what is missing of API key and console user.

    Raises ServerFailed with the last line that it said.
    """
    given = {"MQBROKER_API_KEY": api_key} if api_key else {}
    with log.open("w") as opened:
        done = subprocess.run(
            launch.command("stay", SIGKILL, *commands.manage("prepare")),
            env={**environment, **given},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=opened,
            text=True,
        )
    if done.returncode != 0:
        reason = (log.read_text().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ServerFailed("The database's preparation", reason, log)
    return Access(**json.loads(done.stdout.splitlines()[-1]))


class Memory:
    """Remembers inside a private database's folder which code it was prepared for, and goes with it.

    Asking the database costs a start of Django, 1.5 s: half of what a second start may take.
    """

    def __init__(self, database_folder: Path) -> None:
        self._file = database_folder / "prepared_for"

    def is_up_to_date(self) -> bool:
        """Whether nothing that migrates has changed since."""
        try:
            return self._file.read_text() == fingerprint()
        except FileNotFoundError:
            return False

    def keep(self) -> None:
        self._file.write_text(fingerprint())

    def forget(self) -> None:
        """Somebody else may have changed the tables."""
        self._file.unlink(missing_ok=True)


def fingerprint() -> str:
    """Of our migrations and, by the lock, of everybody else's."""
    digest = hashlib.sha256()
    for file in [ROOT / "requirements.lock", *sorted(ROOT.glob("*/migrations/**/*.*"))]:
        if file.suffix in (".lock", ".py", ".sql"):
            digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()
