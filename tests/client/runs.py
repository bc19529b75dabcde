"""A program that runs a consumer until SIGTERM; its handler takes a second.

Kind `both`: two consumers in one event loop, in a program that hears SIGTERM itself.
"""

import asyncio
import signal
import sys
import time

from mqbroker_client import Broker, Consumer, Delivery
from mqbroker_client.aio import AsyncBroker, AsyncConsumer

kind, url, key, topic = sys.argv[1:]


def handle(delivery: Delivery) -> None:
    print("begun", flush=True)
    time.sleep(1)
    print("done", flush=True)


async def both() -> None:
    signal.signal(signal.SIGTERM, lambda number, frame: print("heard", flush=True))
    broker = AsyncBroker(url, key)
    await asyncio.gather(*(AsyncConsumer(broker, group).run(topic, handle) for group in (topic, f"{topic}-2")))


if kind == "both":
    asyncio.run(both())
elif kind == "Consumer":
    Consumer(Broker(url, key), topic).run(topic, handle)
else:
    asyncio.run(AsyncConsumer(AsyncBroker(url, key), topic).run(topic, handle))
