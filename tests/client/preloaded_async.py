"""A program that uses its AsyncBroker, forks workers while its event loop runs, and goes on using it."""

import asyncio
import json
import multiprocessing
import os
import sys

from mqbroker_client import Message
from mqbroker_client.aio import AsyncBroker, AsyncProducer

SENDS, WORKERS = 60, 3

producer = AsyncProducer(AsyncBroker(sys.argv[1], os.environ["API_KEY"]), "preloaded")
topic = sys.argv[2]


async def send() -> int:
    """How many of the sends were answered with their own ids."""
    messages = [Message(topic, b"order") for _ in range(SENDS)]
    sent = await asyncio.gather(*map(producer.send_message, messages))
    return sum(one.message_id == message.message_id for one, message in zip(sent, messages, strict=True))


def work(owns: "multiprocessing.Queue[int]") -> None:
    owns.put(asyncio.run(send()))


async def main() -> None:
    processes = multiprocessing.get_context("fork")
    await producer.send(topic, b"before the fork")
    owns: multiprocessing.Queue[int] = processes.Queue()
    workers = [processes.Process(target=work, args=(owns,)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    own = await send()
    for worker in workers:
        await asyncio.to_thread(worker.join)
    own += sum(owns.get() for _ in workers)
    await producer.broker.close()
    print(json.dumps({"sent": SENDS * (WORKERS + 1), "own": own, "codes": [worker.exitcode for worker in workers]}))


if __name__ == "__main__":
    asyncio.run(main())
