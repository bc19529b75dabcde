"""Runs the commands of a page as its reader would, and compares their output with the output on the page."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from mqbroker.embedded.commands import ROOT
from tests.broker.running import API_KEY
from tests.docs.pages import Block

LIMIT_SECONDS = 120
# What a page leaves out, because it differs from reader to reader.
LEFT_OUT = "…"
# All that a reader's shell has for sure.
BARE = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
# Of a Java that compiles one class and ends: its quick compiler alone.
BRIEF_JAVA = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
NOT_THE_CHECKOUT = (".git", ".venv", ".mqbroker", "__pycache__", ".*_cache", ".hypothesis", "results")


def typed(blocks: Iterable[Block]) -> list[tuple[str, str]]:
    """The commands of a page in order, each with the output that the page shows for it; empty where it shows none."""
    pairs: list[tuple[str, str]] = []
    for block in blocks:
        if block.language == "sh":
            pairs.append((block.text, ""))
        else:
            command, shown = pairs.pop()
            pairs.append((command, shown + block.text))
    return pairs


def run(commands: Iterable[str], folder: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """What each of the commands prints, when all are typed into one shell in this folder.

    `environment` has further variables; the shell has none of the variables of the tests.
    """
    script = "".join(f"{command}\nprintf '\\0'\n" for command in commands)
    whole = BARE | dict(environment or {})
    done = subprocess.run(
        ["sh", "-euc", script], cwd=folder, env=whole, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split("\0")[:-1]


def agree(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, but for blanks and for what it leaves out."""
    pattern = ".*".join(re.escape("".join(part.split())) for part in shown.split(LEFT_OUT))
    return re.fullmatch(pattern, "".join(printed.split()), re.DOTALL) is not None


def checkout(folder: Path) -> Path:
    """A checkout of this very tree, as it is after the first `./mq` has installed; nothing runs in it."""
    home = folder / "mqbroker"
    shutil.copytree(ROOT, home, ignore=shutil.ignore_patterns(*NOT_THE_CHECKOUT), symlinks=True)
    stamps = home / ".venv" / ".mq"
    stamps.mkdir(parents=True)
    for lock in home.glob("*.lock"):
        shutil.copy(lock, stamps)
    # An environment of its own, with the packages of the one that runs the tests.
    (home / ".venv" / "bin").mkdir()
    (home / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (home / ".venv" / "lib").symlink_to(Path(sys.prefix) / "lib")
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", home / ".venv")
    return home


def keep_key(home: Path) -> None:
    """Gives a checkout the key of the tests' broker, where its own broker would have kept one."""
    secrets = home / ".mqbroker" / "secrets"
    secrets.mkdir(parents=True)
    (secrets / "api-key").write_text(f"{API_KEY}\n")
