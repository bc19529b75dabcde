"""A process of the broker that is killed as soon as its message is committed, before any caller has an answer."""

import os
import signal
import sys

import django
import msgspec

KILLED = -signal.SIGKILL


def die(problem: Exception | None) -> None:
    """Kills this process; called in place of the waiter, behind the commit."""
    os.kill(os.getpid(), signal.SIGKILL)


async def send(document: bytes) -> None:
    """Has a message written by a pipelined batch."""
    from scheduling.sending.send import Send
    from store.commit import writer
    from store.messages import Message

    operation = Send(msgspec.json.decode(document, type=Message))
    await operation.complete()
    writer.hand_in(operation, die)
    await operation.future


def main(document: str) -> None:
    django.setup()
    from store.db import event_loop
    from store.process import runtime

    runtime.install(runtime.Runtime())
    event_loop.run(send(document.encode()), limit_seconds=60)


if __name__ == "__main__":
    main(*sys.argv[1:])
