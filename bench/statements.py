"""The group commit without HTTP in front of it: the same statements, by 200 waiting requests in one process."""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable

import django
import msgspec

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
django.setup()

from scheduling import sends  # noqa: E402  # after Django is set up
from store import database, groupcommit  # noqa: E402
from store.ids import new_id  # noqa: E402
from store.messages import Message  # noqa: E402
from transactions import ends, halves  # noqa: E402
from transactions.ends import EndTransaction  # noqa: E402
from transactions.halves import BeginTransaction  # noqa: E402

WAITERS = 200
ROUNDS = 20_000
BODY = "x" * 1000


async def send() -> None:
    """One plain send."""
    await sends.send(Message(topic="statements", body=BODY))


async def transact() -> None:
    """A half message and its commit."""
    transaction_id = new_id()
    await halves.begin(
        BeginTransaction(topic="statements", body=BODY, producer_group="bench", transaction_id=transaction_id)
    )
    await ends.end(transaction_id, EndTransaction(producer_group="bench", state="COMMIT"))


async def rate(work: Callable[[], Awaitable[None]], rounds: int) -> float:
    """Rounds per second."""
    numbers = iter(range(rounds))

    async def waiter() -> None:
        for _ in numbers:
            await work()

    began = time.perf_counter()
    await asyncio.gather(*(waiter() for _ in range(WAITERS)))
    return rounds / (time.perf_counter() - began)


async def main() -> None:
    """Prints the rates as JSON."""
    rates = {}
    for name, work in (("sends", send), ("transactions", transact)):
        await rate(work, ROUNDS // 10)
        rates[name] = await rate(work, ROUNDS)
    await groupcommit.writers.close()
    await database.reads.close()
    sys.stdout.write(msgspec.json.encode(rates).decode())


if __name__ == "__main__":
    asyncio.run(main())
