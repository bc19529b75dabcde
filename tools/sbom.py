"""Writes the components of the broker as a CycloneDX document: every locked package with its version and hashes."""

import argparse
import sys
from pathlib import Path

from tools import components
from tools.build import time_of_commit


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq sbom", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="the file to write; without it the list is printed")
    given = parser.parse_args(words)
    text = components.of_checkout(time_of_commit())
    if given.file is None:
        sys.stdout.write(text)
    else:
        given.file.write_text(text)
    return 0
