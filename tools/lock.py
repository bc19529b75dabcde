"""Remakes the hash-locked requirements from pyproject.toml: no URL, no index host, one set of versions for all."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.errors import CannotStart

# The runtime's lock is made first: the other locks may add packages, but never choose another version.
LOCKS: dict[str, list[str]] = {
    "requirements.lock": [],
    "requirements-local.lock": ["--extra", "local"],
    "requirements-rocketmq.lock": ["--extra", "rocketmq"],
    "requirements-oidc.lock": ["--extra", "oidc"],
    "requirements-build.lock": ["--extra", "build"],
    # This lock contains the native server, because the tests also run with it.
    "requirements-dev.lock": [
        word for extra in ("dev", "local", "rocketmq", "rocketmq-native", "oidc") for word in ("--extra", extra)
    ],
    "requirements-analytics.lock": ["--extra", "analytics"],
}
# A lock is for every platform and every Python from 3.11 on, and does not depend on the machine that makes it.
OPTIONS = ["--universal", "--python-version", "3.11", "--generate-hashes", "--quiet"]
WITHOUT_PLACES = ["--no-config", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq lock", description=__doc__)
    parser.add_argument(
        "--upgrade", action="store_true", help="take the newest versions instead of keeping those locked"
    )
    given = parser.parse_args(words)
    upgrade = ["--upgrade"] if given.upgrade else []
    made: list[str] = []
    for lock, extra in LOCKS.items():
        constraints = [word for earlier in made for word in ("-c", earlier)]
        command = [find_uv(), "pip", "compile", "pyproject.toml", *extra, *constraints, *OPTIONS, *WITHOUT_PLACES]
        done = subprocess.run([*command, *upgrade, "-o", lock], cwd=ROOT, stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            raise CannotStart(f"{lock} was not made, see above: make pyproject.toml's requirements agree.")
        made.append(lock)
    return 0


def find_uv() -> str:
    found = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if found is None:
        raise CannotStart("uv makes the locks and is not here: run ./mq check once, which installs it, or install uv.")
    return found
