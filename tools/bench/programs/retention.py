"""Retention that is shorter than an hour: drops segments that have been closed for some seconds, until it is stopped.

python -m tools.bench.programs.retention SECONDS
"""

import asyncio
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
django.setup()

from store.process import runtime  # noqa: E402  # imported after Django is set up
from store.segments import lifecycle, retention  # noqa: E402

SECONDS_BETWEEN_LOOKS = 5.0


async def main(seconds: float) -> None:
    """Drops segments as the broker's own maintenance does, which counts whole hours."""
    while True:
        connection = await lifecycle.maintain()
        # Another process maintains the segments now.
        if connection is not None:
            async with connection:
                await retention.drop_old(connection, seconds / 3600)
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


if __name__ == "__main__":
    runtime.install(runtime.Runtime())
    asyncio.run(main(float(sys.argv[1])))
