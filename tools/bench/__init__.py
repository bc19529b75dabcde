"""Runs the benchmarks on their own PostgreSQL and Valkey."""

from mqbroker.embedded import commands
from mqbroker.embedded.cli import foreground, options, private
from tools.bench.arguments import parser


def main(words: list[str]) -> int:
    if options.asks_for_help(words):
        parser().print_help()
        return 0
    with private.servers() as environment:
        return foreground.run(commands.python("-m", "tools.bench", *words), environment)
