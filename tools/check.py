"""Checks everything that needs no running server; every step runs, and the failed ones are listed."""

import argparse
import re
import secrets
import subprocess
from pathlib import Path

from mqbroker.embedded import environment
from mqbroker.embedded.commands import ROOT, manage, python
from tools.house import budgets, figures
from tools.lock import LOCKS

STEPS = {
    "format": python("-m", "ruff", "format", "--check", "."),
    "lint": python("-m", "ruff", "check", "."),
    "synchronous": python("client/synchronous.py", "--check"),
    "types": python("-m", "mypy", "."),
    # The client's folder is found by its processes, not by the linter.
    "imports": python(
        "-c", "import sys, importlinter.cli; sys.path.append('client'); importlinter.cli.lint_imports_command()"
    ),
    # No database is named, because Django would also read from it which migrations are applied.
    "migrations": manage(
        "makemigrations", "--check", "--dry-run", "--settings", "mqbroker.embedded.cli.without_database"
    ),
    "deployment": manage("check", "--deploy", "--fail-level", "WARNING"),
}
# The deployment that docs and docker-compose.yml describe: behind TLS, with its own key.
DEPLOYED = {
    "MQBROKER_SECURE_COOKIES": "true",
    "MQBROKER_SECRET_KEY": secrets.token_urlsafe(50),
    "MQBROKER_SECRETS_KEYS": secrets.token_urlsafe(50),
}
PLACE = re.compile(r"://|^\s*-|\bindex\b")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq check", description=__doc__)
    parser.add_argument("--figures", action="store_true", help="print lengths and repetitions of the code")
    if parser.parse_args(words).figures:
        figures.print_all()
        budgets.print_all()
        return 0
    failed = [name for name, command in STEPS.items() if not passes(name, command)]
    if places := [lock for lock in LOCKS if names_a_place(ROOT / lock)]:
        print(f"A lock names where packages come from: {', '.join(places)}.")
        failed.append("locks")
    print(f"mq check: {'failed: ' + ', '.join(failed) if failed else 'all passed'}", flush=True)
    return 1 if failed else 0


def passes(name: str, command: list[str]) -> bool:
    print(f"--- {name}", flush=True)
    return subprocess.run(command, cwd=ROOT, env=environment.common() | DEPLOYED).returncode == 0


def names_a_place(lock: Path) -> bool:
    """A lock holds versions and hashes only; the installing machine decides where packages come from."""
    return any(PLACE.search(re.sub(r"--hash=sha256:\w+", "", line)) for line in lock.read_text().splitlines())
