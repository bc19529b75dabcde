"""The process that serves RocketMQ 5's clients over gRPC, until a signal.

`python -m mqbroker.rocketmq --port 8081`. With ROCKETMQ_TLS_CERTIFICATE and ROCKETMQ_TLS_KEY it also listens on a
second port, with TLS.
"""

import argparse
import asyncio
import logging.config
import os
import signal
import sys

from mqbroker import logs
from mqbroker.environment import extras


def parser() -> argparse.ArgumentParser:
    """The parser of the command's arguments."""
    made = argparse.ArgumentParser("mqbroker.rocketmq", description=__doc__)
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, default=8081)
    return made


def main(words: list[str]) -> int:
    """Serves until a signal."""
    given = parser().parse_args(words)
    if problem := extras.missing("rocketmq"):
        print(f"mqbroker.rocketmq: {problem}", file=sys.stderr, flush=True)
        return 1
    logging.config.dictConfig(logs.configure(os.environ.get("MQBROKER_LOG", logs.FORMS[0])))
    logs.take_over()
    import django
    import uvloop

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()

    from mqbroker.rocketmq.server import CannotServe
    from store.db.guards import Unfit

    try:
        uvloop.run(serve(given.host, given.port))
    except (CannotServe, Unfit) as problem:
        print(f"mqbroker.rocketmq: {problem}", file=sys.stderr, flush=True)
        return 1
    return 0


async def serve(host: str, port: int) -> None:
    """Serves until SIGTERM or SIGINT. Raises CannotServe, or Unfit."""
    from django.conf import settings

    from mqbroker.process import lifespan
    from mqbroker.rocketmq import server
    from mqbroker.rocketmq.server import Ports

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    tls = (settings.ROCKETMQ_TLS_PORT, settings.ROCKETMQ_TLS_CERTIFICATE, settings.ROCKETMQ_TLS_KEY)
    async with lifespan.running(is_known=False), server.serving(Ports(host, port, *tls)):
        await stop.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
