"""Writes the components of the broker as a CycloneDX document: every locked package with its version and hashes."""

import argparse
import sys
from pathlib import Path

from mqbroker.embedded.commands import ROOT

# What runs a broker: the runtime with private servers, and with the protocol of RocketMQ.
LOCKS = ("requirements-local.lock", "requirements-rocketmq.lock")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq sbom", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="where to write it; without one it is printed")
    given = parser.parse_args(words)
    # Not at the top: --help needs none of the packages that only a checkout's tools have.
    from tools.components import document

    text = document("".join((ROOT / lock).read_text() for lock in LOCKS))
    if given.file is None:
        sys.stdout.write(text + "\n")
    else:
        given.file.write_text(text + "\n")
    return 0
