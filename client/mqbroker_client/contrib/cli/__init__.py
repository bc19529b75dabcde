"""`mqb`, the command line of the broker: sends and receives messages, and helps operators."""

from mqbroker_client.contrib.cli.program import main

__all__ = ["main"]
