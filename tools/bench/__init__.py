"""Runs the benchmarks on their own PostgreSQL and Valkey."""

import argparse

from mqbroker.embedded import commands
from mqbroker.embedded.cli import foreground, options, private


def main(words: list[str]) -> int:
    if options.asks_for_help(words):
        names = "docs/performance.md says what each one measures; without a name all of them run."
        argparse.ArgumentParser("mq bench", usage="mq bench [name ...]", description=__doc__, epilog=names).print_help()
        return 0
    with private.servers() as environment:
        return foreground.run(commands.python("-m", "tools.bench", *words), environment)
