"""Kills, freezes and cuts off a broker under load, and reads back whether every promise was kept."""

import argparse

from mqbroker.embedded import commands
from mqbroker.embedded.cli import foreground, options, private


def main(words: list[str]) -> int:
    if options.asks_for_help(words):
        usage = "mq chaos [--seed N] [--minutes M] [--logs FILE]"
        epilog = "The same seed has the same faults in the same order. docs/promises.md says what is promised."
        argparse.ArgumentParser("mq chaos", usage=usage, description=__doc__, epilog=epilog).print_help()
        return 0
    with private.servers() as environment:
        return foreground.run(commands.python("-m", "tests.chaos.storm", *words), environment)
