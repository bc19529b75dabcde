"""Compares the locked packages with the known weaknesses, where the advisories can be reached."""

import argparse
import subprocess

from embedded import environment
from embedded.cli.sbom import LOCK
from embedded.commands import ROOT, python
from embedded.errors import CannotStart

# The lock holds every package with its hash: nothing has to be resolved or installed.
WORDS = ("--require-hashes", "--disable-pip", "--progress-spinner", "off", "--requirement", str(LOCK))
# pip-audit's exit code for both outcomes that are not "no weakness is known"; a summary on its first lines says which.
FOUND = ("known vulnerabilit", "Found ")


def main(words: list[str]) -> int:
    argparse.ArgumentParser("mq audit", description=__doc__).parse_args(words)
    done = subprocess.run(
        python("-m", "pip_audit", *WORDS), cwd=ROOT, env=environment.common(), capture_output=True, text=True
    )
    if done.returncode == 0 or any(word in done.stdout + done.stderr for word in FOUND):
        print(done.stdout + done.stderr, end="")
        return done.returncode
    reason = (done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]
    raise CannotStart(f"The advisories could not be read, so nothing is known: {reason}")
