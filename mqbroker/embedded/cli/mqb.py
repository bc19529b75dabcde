"""Runs `mqb`, the client's command line, by default for the broker that runs on the data folder."""

import argparse
import os
import sys

from mqbroker.embedded import commands, environment
from mqbroker.embedded.cli import beside, options


def main(words: list[str]) -> int:
    """Replaces this process by `mqb`, in the caller's folder. If the caller names another broker, the data folder's API
    key is not passed to `mqb`.
    """
    parser = argparse.ArgumentParser(add_help=False)
    options.add_data_folder(parser)
    whole = environment.common()
    is_named = bool(os.environ.get("MQBROKER_URL")) or any(word.startswith("--u") for word in words)
    key = os.environ.get("MQBROKER_API_KEY") or None
    if not is_named and (found := beside.on_folder(parser.parse_args([]).folder, key)):
        whole |= dict(zip(("MQBROKER_URL", "MQBROKER_API_KEY"), found, strict=True))
    os.chdir(os.environ.get("MQ_CALLED_FROM", "."))
    # The option -P: no module of the caller's folder may hide a module of Python's library.
    os.execve(sys.executable, commands.python("-P", "-m", "mqbroker_client.contrib.cli", *words), whole)
