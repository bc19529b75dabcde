"""Segments without a broker: the time for which a roll stops the writers, and the cost of more segments for a send."""

import asyncio
import os
import sys
import time
from pathlib import Path

import django
import msgspec

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
django.setup()

from sending import sends  # noqa: E402  # after Django is set up
from store.db import connections  # noqa: E402
from store.db.connections import Connection  # noqa: E402
from store.messages import Message  # noqa: E402
from store.process import runtime  # noqa: E402
from store.segments import lifecycle, log  # noqa: E402
from store.segments.retention import CARRY_POSITIONS  # noqa: E402

POSITIONS = 10_000
MOVES = 100
SEGMENTS = (8, 16, 32, 64)
SENDS = 6_000
WAITERS = 200
REPEATS = 5

FILL = """
INSERT INTO progress (segment_id, reader_id, topic_id, queue_id, move, next_offset, moved_at)
SELECT 1, 1 + p / 40, 3 + mod(p, 40) / 4, mod(p, 4), m, m, now()
FROM generate_series(0, %(positions)s - 1) AS p, generate_series(1, %(moves)s) AS m
"""
WRITERS_BACKEND = """
SELECT pid FROM pg_stat_activity WHERE application_name = 'mqbroker-writer' AND datname = current_database()
"""


async def milliseconds(connection: Connection) -> dict[str, float]:
    """Of a roll, and of carrying the positions over, which a roll would have to wait for if it did that too."""
    async with connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = '5min'")
        await connection.execute(FILL, {"positions": POSITIONS, "moves": MOVES})
    await connection.execute("VACUUM ANALYZE progress")
    rolls, carries = [], []
    for _ in range(REPEATS):
        await lifecycle.prepare(connection)
        began = time.perf_counter()
        opened = await lifecycle.roll(connection, 0, 0)
        rolls.append(time.perf_counter() - began)
        await log.join(connection)
        began = time.perf_counter()
        await connections.execute(connection, CARRY_POSITIONS, {"segment_id": opened, "from_segment_id": 1})
        carries.append(time.perf_counter() - began)
        await connection.rollback()
    return {"roll_ms": min(rolls) * 1e3, "carry_ms": min(carries) * 1e3}


async def send_many(count: int) -> None:
    """Sends from 200 waiters at once."""
    numbers = iter(range(count))

    async def waiter() -> None:
        for _ in numbers:
            await sends.send(Message(topic="statements", body="x" * 1000))

    await asyncio.gather(*(waiter() for _ in range(WAITERS)))


async def microseconds_per_send(connection: Connection) -> float:
    """CPU of the writer's backend in PostgreSQL."""
    await send_many(SENDS // 10)
    [row] = await (await connection.execute(WRITERS_BACKEND)).fetchall()
    before = _cpu_seconds(row.pid)
    await send_many(SENDS)
    return (_cpu_seconds(row.pid) - before) / SENDS * 1e6


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def main() -> None:
    """Prints the figures as JSON."""
    connection = await lifecycle.maintain()
    if connection is None:
        raise RuntimeError("another process maintains the segments of this database")
    async with connection:
        found = await milliseconds(connection)
        opened = 1 + REPEATS
        for number in SEGMENTS:
            while opened < number:
                await lifecycle.prepare(connection)
                opened = await lifecycle.roll(connection, 0, 0) or opened
            found[f"send_us_of_{number}_segments"] = await microseconds_per_send(connection)
    await runtime.current().close()
    sys.stdout.write(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    runtime.install(runtime.Runtime())
    asyncio.run(main())
