"""Makes valid and invalid requests from the schema, and compares each answer with the schema."""

import argparse

from mqbroker.embedded import commands
from mqbroker.embedded.cli import foreground, options, private


def main(words: list[str]) -> int:
    if options.asks_for_help(words):
        epilog = "Each operation is first reached with a request that it takes, on a broker with data of its own."
        argparse.ArgumentParser(
            "mq fuzz", usage="mq fuzz [--minutes M]", description=__doc__, epilog=epilog
        ).print_help()
        return 0
    with private.servers() as environment:
        return foreground.run(commands.python("-m", "tests.control.fuzzing", *words), environment)
