"""Checks without HTTP: claims a group's half messages and writes a COMMIT for each, as if its producer had answered."""

import asyncio
import os
import sys
import time

import django
import msgspec

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
django.setup()

from store.db import connections  # noqa: E402  # imported after Django is set up
from store.process import runtime  # noqa: E402
from transactions import groups  # noqa: E402
from transactions.checks import outcomes, questions  # noqa: E402
from transactions.checks.claims import CLAIM_HALVES, MAX_CLAIM_BYTES  # noqa: E402
from transactions.checks.outcomes import Attempt  # noqa: E402

PER_CLAIM = 1000


async def main(name: str) -> None:
    """Prints ends per second as JSON."""
    group = await groups.find(name)
    assert group is not None
    claim = {
        "group_id": group.id,
        "claim_seconds": 60.0,
        "max_halves": PER_CLAIM,
        "max_bytes": MAX_CLAIM_BYTES,
        "topic_ids": None,
    }
    done, began = 0, time.perf_counter()
    while halves := await connections.read(CLAIM_HALVES, claim):
        await questions.transactions(halves)
        attempts = [Attempt(half.transaction_id, None, None, True, "COMMIT", 200, 0, None, 30.0) for half in halves]
        await asyncio.gather(*map(outcomes.apply, attempts))
        done += len(halves)
    seconds = time.perf_counter() - began
    await runtime.current().close()
    sys.stdout.write(msgspec.json.encode(done / seconds).decode())


if __name__ == "__main__":
    runtime.install(runtime.Runtime())
    asyncio.run(main(sys.argv[1]))
