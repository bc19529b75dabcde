"""A process of the broker that sends numbered messages, many at a time, and says of each what it was answered."""

import asyncio
import json
import sys

import django

AT_A_TIME = 32


async def send_all(topic: str, name: str, count: int) -> list[tuple[str, int, int]]:
    """Of each message: its body, and the queue and offset it was answered."""
    from tests.store.keeper import sent

    numbers = iter(range(count))
    answers: list[tuple[str, int, int]] = []

    async def send_some() -> None:
        for number in numbers:
            body = f"{name} {number}"
            answer = await sent(topic, body)
            answers.append((body, answer["queue_id"], answer["queue_offset"]))

    await asyncio.gather(*(send_some() for _ in range(AT_A_TIME)))
    return answers


def main(topic: str, name: str, count: str) -> None:
    django.setup()
    from store import runtime
    from store.db import event_loop

    runtime.install(runtime.Runtime())
    print(json.dumps(event_loop.run(send_all(topic, name, int(count)), limit_seconds=60)))


if __name__ == "__main__":
    main(*sys.argv[1:])
