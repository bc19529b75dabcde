"""Relays a topic to another system's broker, as a file describes; docs/relay.md explains the file."""

import argparse

from mqbroker.embedded import commands, environment
from mqbroker.embedded.cli import beside, foreground, options
from mqbroker.embedded.errors import CannotStart


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq relay", description=__doc__)
    parser.add_argument("file", type=options.path_given, help="the TOML file with topic, group and target")
    beside.add_arguments(parser, "which may consume the topic")
    given = parser.parse_args(words)
    found = beside.broker(parser, given)
    if found is None:
        raise CannotStart(f"No broker runs on {given.folder.path}: ./mq up starts one, --broker names another.")
    url, key = found
    command = commands.python("-m", "mqbroker_client.contrib.relay", str(given.file))
    return foreground.run(command, environment.common() | {"MQBROKER_URL": url, "MQBROKER_API_KEY": key})
