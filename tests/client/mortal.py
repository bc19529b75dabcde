"""A consumer whose process one message kills, as a fault of its memory would; the others take a while."""

import asyncio
import os
import signal
import sys
import time

from mqbroker_client import Broker, Consumer, Delivery
from mqbroker_client.aio import AsyncBroker, AsyncConsumer

DEADLY = b"deadly"
# Longer than the deadly one: whatever is handled beside that one dies with it.
WORK_SECONDS = 0.05


def handle(delivery: Delivery) -> None:
    if delivery.body == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(WORK_SECONDS)
    with open(done, "a") as file:
        file.write(delivery.body.decode() + "\n")


async def run_tasks() -> None:
    async with AsyncBroker(url, os.environ["API_KEY"]) as broker:
        await AsyncConsumer(broker, group).run(
            topic, handle, concurrency=concurrency, ordered=ordered, invisible_seconds=1
        )


def run_threads() -> None:
    with Broker(url, os.environ["API_KEY"]) as broker:
        Consumer(broker, group).run(topic, handle, concurrency=concurrency, ordered=ordered, invisible_seconds=1)


if __name__ == "__main__":
    kind, handlers, url, group, topic, done, in_order = sys.argv[1:]
    concurrency, ordered = int(handlers), bool(in_order)
    if kind == "tasks":
        asyncio.run(run_tasks())
    else:
        run_threads()
