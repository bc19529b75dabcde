"""A program that runs a consumer until SIGTERM; its handler takes a second."""

import asyncio
import sys
import time

from mqbroker_client import Broker, Consumer, Delivery
from mqbroker_client.aio import AsyncBroker, AsyncConsumer

kind, url, key, topic = sys.argv[1:]


def handle(delivery: Delivery) -> None:
    print("begun", flush=True)
    time.sleep(1)
    print("done", flush=True)


if kind == "Consumer":
    Consumer(Broker(url, key), topic).run(topic, handle)
else:
    asyncio.run(AsyncConsumer(AsyncBroker(url, key), topic).run(topic, handle))
