"""A process of the broker with too little memory for an answer of the database; prints what its callers are answered.

libpq has an error of its own then, which has no SQLSTATE: the server knows nothing of it.
"""

import asyncio
import resource
import sys

import django
import psutil

# What is left of memory: much less than the answer.
LEFT_BYTES = 32 * 1024 * 1024


async def outcomes(topic: str) -> list[str]:
    """Of a transaction with an answer that is too large, of one behind it, and of one that comes later."""
    from store.db.pipeline import Call, open_pipeline
    from tests.store.test_pipeline import LARGE, make

    line = await open_pipeline("test")
    await line.run([make(f"{topic} before")])
    most_bytes = psutil.Process().memory_info().vms + LEFT_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, resource.RLIM_INFINITY))
    under_way = [line.run([make(topic), Call(LARGE, {})]), line.run([make(f"{topic} behind")])]
    found = await asyncio.gather(*under_way, return_exceptions=True)
    found += await asyncio.gather(line.run([make(f"{topic} after")]), return_exceptions=True)
    return [type(one).__name__ for one in found]


def main(topic: str) -> None:
    django.setup()
    from store.db import event_loop
    from store.process import runtime

    runtime.install(runtime.Runtime())
    print(*event_loop.run(outcomes(topic), limit_seconds=60))


if __name__ == "__main__":
    main(*sys.argv[1:])
