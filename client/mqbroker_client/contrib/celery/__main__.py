"""`python -m mqbroker_client.contrib.celery APP`: a relay that publishes task calls to the broker of a Celery app.

MQBROKER_URL and MQBROKER_API_KEY are the address and the API key of mqbroker.
"""

import argparse
import sys

from celery.app.utils import find_app

from mqbroker_client.contrib.celery.relay import GROUP, Relay
from mqbroker_client.contrib.celery.tasks import TOPIC
from mqbroker_client.contrib.relay.relays import CONCURRENCY
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.errors import BrokerError


def main(words: list[str] | None = None) -> int:
    """Relays until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser("python -m mqbroker_client.contrib.celery", description=__doc__)
    parser.add_argument("app", help="the Celery app, as in Celery's -A: shop.celery, or shop.celery:app")
    parser.add_argument("--topic", default=TOPIC, help="the topic of the calls (default: %(default)s)")
    parser.add_argument("--group", default=GROUP, help="the relay's consumer group (default: %(default)s)")
    parser.add_argument(
        "--concurrency", type=int, default=CONCURRENCY, help="the number of threads (default: %(default)s)"
    )
    given = parser.parse_args(words)
    try:
        app = find_app(given.app)
        relay = Relay(app, Consumer(Broker.from_env(), given.group), given.topic)
        print(f"relays {given.topic} as {given.group}", flush=True)
        relay.run(concurrency=given.concurrency)
    except (BrokerError, ValueError, ImportError, AttributeError) as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
