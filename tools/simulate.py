"""Runs the product's code in a simulated event loop, by seeds, and tells each failure with its schedule."""

from mqbroker.embedded import commands, environment
from mqbroker.embedded.cli import foreground


def main(words: list[str]) -> int:
    # A setting of the caller's would change the runs, and so would the order of sets.
    settings = {name: value for name, value in environment.common().items() if not name.startswith("MQBROKER_")}
    command = commands.python("-m", "tests.simulated.loop.night", *words)
    return foreground.run(command, settings | {"PYTHONHASHSEED": "0"})
