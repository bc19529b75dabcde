"""Runs the product's code in a simulated event loop, by seeds, and prints each failure with its schedule."""

import argparse

from mqbroker.embedded import commands, environment
from mqbroker.embedded.cli import foreground, options


def main(words: list[str]) -> int:
    if options.asks_for_help(words):
        usage = "mq simulate [name ...] [--seed N] [--seconds S] [--runs N]"
        epilog = "--seconds and --runs bound each scenario; a name that does not exist is answered with those that do."
        argparse.ArgumentParser("mq simulate", usage=usage, description=__doc__, epilog=epilog).print_help()
        return 0
    # Settings of the caller, and the random order of sets, would change the runs.
    settings = {name: value for name, value in environment.common().items() if not name.startswith("MQBROKER_")}
    command = commands.python("-m", "tests.simulated.loop.night", *words)
    return foreground.run(command, settings | {"PYTHONHASHSEED": "0"})
