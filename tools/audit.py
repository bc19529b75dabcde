"""Compares the locked packages with known weaknesses, if the advisories can be reached."""

import argparse
import json
import subprocess
from collections.abc import Iterable
from typing import Any, NamedTuple

from mqbroker.embedded import environment
from mqbroker.embedded.commands import ROOT, python
from mqbroker.embedded.errors import CannotStart
from tools.components import LOCKS

# The lock has each package with its hash, so no package has to be resolved or installed.
QUIET_JSON = ("--progress-spinner", "off", "--format", "json")
LOCKED = tuple(word for lock in LOCKS for word in ("--requirement", str(ROOT / lock)))
WORDS = (*QUIET_JSON, "--require-hashes", "--disable-pip", *LOCKED)


class Unknown(NamedTuple):
    """A package of the lock that could not be looked up, and the reason."""

    name: str
    reason: str


def main(words: list[str]) -> int:
    """Returns the exit code: 1 if a weakness is known, or if a package could not be looked up."""
    argparse.ArgumentParser("mq audit", description=__doc__).parse_args(words)
    done = subprocess.run(
        python("-m", "pip_audit", *WORDS), cwd=ROOT, env=environment.common(), capture_output=True, text=True
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        reason = (done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]
        raise CannotStart(f"The advisories could not be read, so nothing is known: {reason}") from None
    known, unknown = list(weaknesses(packages)), list(skipped(packages))
    lines = [*known, *spoken(unknown, len(packages))]
    print("\n".join(lines or [f"No weakness is known of {len(packages)} packages."]))
    return 1 if known or unknown else 0


def weaknesses(packages: Iterable[dict[str, Any]]) -> Iterable[str]:
    """A line for each known weakness: the package, the weakness and the versions without it."""
    for package in packages:
        for weakness in package.get("vulns", ()):
            mended = ", ".join(weakness["fix_versions"]) or "no version yet"
            yield f"{package['name']} {package['version']}: {weakness['id']}, mended in {mended}"


def skipped(packages: Iterable[dict[str, Any]]) -> Iterable[Unknown]:
    """The packages that pip-audit left out."""
    return (Unknown(one["name"], one["skip_reason"]) for one in packages if "skip_reason" in one)


def spoken(unknown: list[Unknown], total: int) -> Iterable[str]:
    """A line for each package that was not looked up, and the way out."""
    if unknown:
        yield f"{len(unknown)} of {total} packages could not be looked up, so nothing is known of them:"
        yield from (f"  {one.name}: {one.reason}" for one in unknown)
        yield "Run it again where the package index has them and the advisories can be reached."
