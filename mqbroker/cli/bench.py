"""Runs the benchmarks on a PostgreSQL and a Valkey of their own."""

from mqbroker.cli import foreground, private
from mqbroker.embedded import commands


def main(words: list[str]) -> int:
    with private.servers() as environment:
        return foreground.run(commands.python("-m", "bench", *words), environment)
