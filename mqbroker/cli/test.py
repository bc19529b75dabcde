"""Runs the tests on a PostgreSQL and a Valkey of their own, which end and are forgotten with them."""

from mqbroker.cli import foreground, private
from mqbroker.embedded import commands


def main(words: list[str]) -> int:
    with private.servers() as environment:
        return foreground.run(commands.python("-m", "pytest", *words), environment)
