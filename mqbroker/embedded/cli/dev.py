"""Runs the broker for its developers: web, worker and beat start again when code changes, without the demonstration."""

import argparse

from mqbroker.embedded.cli import options, up


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq dev", description=__doc__)
    parser.add_argument("--port", type=options.port, default=8000, help="the port of the web process (default: 8000)")
    options.add_data_folder(parser)
    options.add_api_key(parser, "the key that callers will use (default: one is made)")
    options.add_rocketmq_port(parser)
    given = parser.parse_args(words, argparse.Namespace(no_demo=True, processes="1", cells=None))
    return up.serve(given, reload=True)
