"""A process of the broker that sends numbered messages, many at a time, until its standard input ends.

It says of each what it was answered.
"""

import asyncio
import itertools
import json
import sys

import django

AT_A_TIME = 32


async def send_all(topic: str, name: str) -> list[tuple[str, int, int]]:
    """Of each message: its body, and the queue and offset it was answered."""
    from tests.store.keeper import sent

    numbers = itertools.count()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
    answers: list[tuple[str, int, int]] = []

    async def send_some() -> None:
        while not ended.is_set():
            body = f"{name} {next(numbers)}"
            answer = await sent(topic, body)
            answers.append((body, answer["queue_id"], answer["queue_offset"]))

    await asyncio.gather(*(send_some() for _ in range(AT_A_TIME)))
    return answers


def main(topic: str, name: str) -> None:
    django.setup()
    from store.db import event_loop
    from store.process import runtime

    runtime.install(runtime.Runtime())
    print(json.dumps(event_loop.run(send_all(topic, name), limit_seconds=60)))


if __name__ == "__main__":
    main(*sys.argv[1:])
