"""`python -m mqbroker_client.contrib.relay FILE`: relays a topic to another system's broker, as the file describes.

MQBROKER_URL and MQBROKER_API_KEY are the address and the API key of mqbroker.
"""

import argparse
import sys
from pathlib import Path

from mqbroker_client.contrib.relay import configuration
from mqbroker_client.contrib.relay.relays import Relay
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.errors import BrokerError


def main(words: list[str] | None = None) -> int:
    """Relays until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser("python -m mqbroker_client.contrib.relay", description=__doc__)
    parser.add_argument("file", type=Path, help="the TOML file with topic, group and target")
    given = parser.parse_args(words)
    try:
        found = configuration.read(given.file)
        consumer = Consumer(Broker.from_env(), found.group)
        relay = Relay(consumer, found.topic, found.make_target(), filter=found.filter, ordered=found.ordered)
        print(f"relays {found.topic} as {found.group}", flush=True)
        relay.run(concurrency=found.concurrency)
    except (BrokerError, ValueError, OSError) as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
