"""Fills a broker with many of everything, and measures the console's pages on it, in one process.

As a program, on an empty, migrated database: prints each page's statements and milliseconds.
`DATABASE_URL=… python -m tests.console.scale --messages 1000000 --halves 100000 --topics 500 --groups 200`
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

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


async def measure(user: str, pages: tuple[str, ...] = PAGES, times: int = 5) -> dict[str, tuple[int, int, float]]:
    """Of each page the status, the statements, and the median of its milliseconds, in this process.

    The fewest statements of all times: the process's own work, such as its heartbeat, falls into some of them.
    """
    from asgiref.sync import sync_to_async
    from django.contrib.auth.models import User
    from django.test import AsyncClient

    from mqbroker import background

    background.start()
    counter, client = Counter(), AsyncClient()
    await sync_to_async(client.force_login)(await User.objects.aget(username=user))
    found = {}
    for page in pages:
        await client.get(f"/console/{page}")
        took, asked = [], []
        for _ in range(times):
            counter.statements, began = 0, time.perf_counter()
            status = (await client.get(f"/console/{page}")).status_code
            took.append((time.perf_counter() - began) * 1000)
            asked.append(counter.statements)
        found[page] = (status, min(asked), statistics.median(took))
    await background.close()
    return found


def measured(user: str) -> Iterator[str]:
    """The measurement, a line per page."""
    for page, (status, statements, milliseconds) in asyncio.run(measure(user)).items():
        yield json.dumps({"page": page, "status": status, "statements": statements, "ms": round(milliseconds, 1)})


if __name__ == "__main__":
    import django

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--user", default="admin")
    for size in ("messages", "halves", "topics", "groups"):
        parser.add_argument(f"--{size}", type=int, default=0)
    given = vars(parser.parse_args())
    name = given.pop("user")
    if given["messages"]:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as to_fill:
            fill(to_fill, **given)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()
    for line in measured(name):
        print(line)
