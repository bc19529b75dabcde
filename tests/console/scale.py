"""Fills a broker with many of everything, and measures the console's pages on it, in one process.

As a program, on an empty, migrated database: prints each page's statements, time and CPU.
`DATABASE_URL=… python -m tests.console.scale --messages 10000000 --halves 100000 --topics 500 --groups 200`
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg

from tests.broker.processor_time import used_by_tree

PAGES = (
    "",
    "transactions/pending/",
    "transactions/pending/?all=1",
    "transactions/discarded/",
    "transactions/ended/",
    "producer-groups/",
    "producer-groups/group-0001/",
    "topics/",
    "topics/?own=1",
    "topics/topic-0001/",
    "delays/",
    "consumer-groups/",
    "consumer-groups/?by=lag",
    "consumer-groups/group-0001/",
    "dead-letters/",
    "dead-letters/group-0001/",
    "subscriptions/",
    "subscriptions/group-0001/",
    "system/",
    "find/?q=key-1",
    "find/?q=topic-00",
)
FILL = Path(__file__).with_name("scale.sql")


def fill(connection: psycopg.Connection[Any], **sizes: int) -> None:
    """Writes so many messages, halves, topics and groups; each group reads two topics and has ten dead letters."""
    text = FILL.read_text(encoding="utf-8")
    for name, size in sizes.items():
        text = text.replace(f":{name}", str(size))
    for statement in text.split(";\n"):
        connection.execute(statement.encode())
    connection.execute("ANALYZE")


class Counter:
    """Counts the statements that this process executes, on whichever connection."""

    def __init__(self) -> None:
        self.statements = 0
        for cursor in (psycopg.Cursor, psycopg.AsyncCursor):
            cursor.execute = self._counted(cursor.execute)  # type: ignore[method-assign]  # it is put around

    def _counted(self, execute: Any) -> Any:
        def counted(cursor: Any, *given: Any, **named: Any) -> Any:
            self.statements += 1
            return execute(cursor, *given, **named)

        return counted


class Measured(NamedTuple):
    """A page: its status, its statements, the median of its milliseconds, and the CPU of a request in milliseconds.

    The CPU, of this process and of PostgreSQL, is what the page takes on a machine that does nothing else.
    """

    page: str
    status: int
    statements: int
    ms: float
    web_ms: float
    server_ms: float | None


async def measure(user: str, postmaster: psutil.Process | None, times: int) -> list[Measured]:
    """What each page costs in this process.

    The fewest statements of all times: the process's own work, such as its heartbeat, falls into some of them.
    """
    counter, client = Counter(), await signed_in(user)
    found = []
    for page in PAGES:
        await client.get(f"/console/{page}")
        took, asked, used = [], [], Used(postmaster)
        for _ in range(times):
            counter.statements, began = 0, time.perf_counter()
            status = (await client.get(f"/console/{page}")).status_code
            took.append((time.perf_counter() - began) * 1000)
            asked.append(counter.statements)
        web, server = used.milliseconds(times)
        found.append(Measured(page, status, min(asked), round(statistics.median(took), 1), web, server))
    await close()
    return found


class Used:
    """The CPU that was used since its making."""

    def __init__(self, postmaster: psutil.Process | None) -> None:
        self.postmaster = postmaster
        self.web, self.server = time.process_time(), server_seconds(postmaster)

    def milliseconds(self, requests: float) -> tuple[float, float | None]:
        """Of one request of so many: of this process, and of PostgreSQL."""
        web, server = time.process_time() - self.web, server_seconds(self.postmaster) - self.server
        return round(web / requests * 1000, 1), round(server / requests * 1000, 1) if self.postmaster else None


async def signed_in(user: str) -> Any:
    """A caller of the pages in this process, which runs what a web process runs besides."""
    from asgiref.sync import sync_to_async
    from django.contrib.auth.models import User
    from django.test import AsyncClient

    from mqbroker.process import background

    background.start()
    client = AsyncClient()
    await sync_to_async(client.force_login)(await User.objects.aget(username=user))
    return client


async def close() -> None:
    """Ends what `signed_in` has begun."""
    from mqbroker.process import background

    await background.close()


def server_seconds(postmaster: psutil.Process | None) -> float:
    """The CPU that a PostgreSQL of this machine has used: the postmaster, its backends, and those that have ended."""
    if postmaster is None:
        return 0.0
    return used_by_tree(postmaster)


async def open_overview(user: str, postmaster: psutil.Process) -> dict[str, float]:
    """What one open overview costs: the CPU of a minute with its six requests, less that of a minute without one.

    In percent of a core, of this process and of PostgreSQL.
    """
    client = await signed_in(user)
    await client.get("/console/")
    used = []
    for requests in (0, 6):
        minute = Used(postmaster)
        for _ in range(6):
            await asyncio.sleep(10)
            if requests:
                await client.get("/console/")
        used.append(minute.milliseconds(1))
    await close()
    web, server = ((busy or 0) - (idle or 0) for idle, busy in zip(*used, strict=True))
    return {"web": round(web / 600, 2), "PostgreSQL": round(server / 600, 2)}


if __name__ == "__main__":
    import django

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--user", default="admin")
    for size in ("messages", "halves", "topics", "groups"):
        parser.add_argument(f"--{size}", type=int, default=0)
    parser.add_argument("--postmaster", type=int, help="the process id of PostgreSQL, whose CPU is printed, too")
    parser.add_argument("--open-overview", action="store_true", help="two minutes: what an open overview costs")
    parser.add_argument("--times", type=int, default=10, help="how often each page is asked for (default: 10)")
    given = vars(parser.parse_args())
    name, postmaster, minutes, asked = (given.pop(one) for one in ("user", "postmaster", "open_overview", "times"))
    if given["messages"]:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as to_fill:
            fill(to_fill, **given)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()
    server = psutil.Process(postmaster) if postmaster else None
    if minutes and server:
        print(json.dumps(asyncio.run(open_overview(name, server))))
    else:
        for one in asyncio.run(measure(name, server, asked)):
            print(json.dumps(one._asdict()))
