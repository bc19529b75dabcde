"""A process of the broker that receives from a topic and rewinds its group, over and over, until it is ended."""

import contextlib
import sys

import django


async def receive_forever(topic: str, group: str, wish: str | None) -> None:
    """Pages as large as a receive gives, again and again the same."""
    from delivery.receive import offsets, receives
    from delivery.receive.receives import Receive
    from store.errors import Refusal

    while True:
        # One that is stopped in the middle may be refused.
        with contextlib.suppress(Refusal):
            await receives.receive(group, Receive(topic=topic, filter=wish))
            await offsets.reset(group, offsets.ResetOffsets(topic=topic, to="earliest"))


def main(topic: str, group: str, wish: str | None = None) -> None:
    django.setup()
    from store.db import event_loop
    from store.process import runtime

    runtime.install(runtime.Runtime())
    event_loop.run(receive_forever(topic, group, wish), limit_seconds=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
