"""`mqb`, the broker on the command line: sends and receives, and shows and moves what operators ask about."""

from mqbroker_client.contrib.cli.program import main

__all__ = ["main"]
