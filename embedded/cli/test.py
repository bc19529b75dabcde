"""Runs the tests on a PostgreSQL and a Valkey of their own, which are removed afterwards."""

import argparse

from embedded import commands
from embedded.cli import foreground, options, private


def main(words: list[str]) -> int:
    if options.asks_for_help(words):
        pytest = "Options are pytest's: .venv/bin/python -m pytest --help prints them once ./mq test has run."
        argparse.ArgumentParser(
            "mq test", usage="mq test [file or folder ...] [pytest's options]", description=__doc__, epilog=pytest
        ).print_help()
        return 0
    with private.servers() as environment:
        return foreground.run(commands.python("-m", "pytest", *words), environment)
