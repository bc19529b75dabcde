"""Keeps the segments of one database: runs their steps, and sends and reads meanwhile, in this process."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
import psycopg
from psycopg.rows import namedtuple_row

from store import queues
from store.commit.stalled import Watch
from store.commit.writer import Writers
from store.db import connections, event_loop
from store.db.connections import Connection, Reads
from store.naming import topics
from store.notices.notifier import Wakeups
from store.process import runtime
from store.process.answer_budget import Hold
from store.process.runtime import Runtime
from store.segments import lifecycle, partitions, retention

ROOT = Path(__file__).resolve().parents[2]
LOCK_TIMEOUT = "400ms"
Result = TypeVar("Result")


class Keeper:
    """Within `with`, the process's broker code works on the database of the URL."""

    def __init__(self, database_url: str) -> None:
        self.url = database_url

    def __enter__(self) -> Self:
        from django.conf import settings  # read here, where the environment names the settings

        from store.db.server_url import database as parsed

        self._database = dict(settings.DATABASES["default"])
        self._creates = settings.AUTO_CREATE_TOPICS
        settings.DATABASES["default"].update(parsed(self.url))
        settings.AUTO_CREATE_TOPICS = True
        runtime.install(Runtime())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from django.conf import settings

        self.do(runtime.current().close((Writers, Watch, Wakeups, Reads)))
        runtime.install(None)
        settings.DATABASES["default"].update(self._database)
        settings.AUTO_CREATE_TOPICS = self._creates

    def do(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs a piece of the broker's code."""
        return event_loop.run(work, limit_seconds=60)

    def sql(self, statement: str, *values: object) -> list[Any]:
        """The rows of a statement, by a connection of the test's own."""
        with psycopg.connect(self.url, row_factory=namedtuple_row) as connection:
            cursor = connection.execute(statement.encode(), values)
            return [] if cursor.description is None else cursor.fetchall()

    def session(self) -> psycopg.Connection[Any]:
        """A session that may hold locks and snapshots for long."""
        return psycopg.connect(self.url, row_factory=namedtuple_row)

    def send(self, topic: str, body: str, **fields: Any) -> dict[str, Any]:
        """Sends one message."""
        return self.do(sent(topic, body, **fields))

    def roll(self) -> int:
        """Closes the open segment now, and opens the next one; returns the closed one's id."""
        return self.do(rolled())

    def drop_old(self, reserved_hours: float = 0) -> list[int]:
        """Drops what has been closed for longer; by default all that is closed."""
        return self.do(dropped(reserved_hours))

    def read(self, topic: str, queue_id: int = 0, from_offset: int = 0) -> list[Any]:
        """The entries of a queue with their messages."""
        return self.do(entries(topic, queue_id, from_offset))

    def states(self) -> dict[int, str]:
        """The state of every segment by its id."""
        return {row.id: row.state for row in self.sql("SELECT id, state FROM segment ORDER BY id")}

    def partitions(self, segment_id: int) -> dict[str, str]:
        """Where the partitions of a segment stand, by their table."""
        return self.do(standing(segment_id))

    def segments_of(self, message_id: uuid.UUID) -> list[int]:
        """In which segments the body of a message lies."""
        rows = self.sql("SELECT segment_id FROM commit_log WHERE message_id = %s ORDER BY 1", message_id)
        return [row.segment_id for row in rows]

    def start(self, module: str, *words: str) -> subprocess.Popen[str]:
        """Another process of the broker on the same database; its standard input is open until it is closed here."""
        environment = {**os.environ, "DATABASE_URL": self.url, "MQBROKER_AUTO_CREATE_TOPICS": "true"}
        environment["DJANGO_SETTINGS_MODULE"] = "mqbroker.settings"
        command = [sys.executable, "-m", module, *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)


async def sent(topic: str, body: str, **fields: Any) -> dict[str, Any]:
    """The answer to a send."""
    from scheduling.sending.send import Send
    from store.commit import writer
    from store.messages import Message

    return fields_of((await writer.run(Send(Message(topic=topic, body=body, **fields))))[0])


def fields_of(answer: msgspec.Struct) -> dict[str, Any]:
    """The fields of an answer that are set, with the objects in lists as fields, too."""
    found = {name: value for name, value in msgspec.structs.asdict(answer).items() if value is not msgspec.UNSET}
    for name, value in found.items():
        if isinstance(value, list):
            found[name] = [fields_of(one) if isinstance(one, msgspec.Struct) else one for one in value]
    return found


async def maintained() -> Connection:
    """A connection that maintains, not patiently; the server may need a moment to see that one before is dead."""
    deadline = time.monotonic() + 10
    while (connection := await lifecycle.maintain(LOCK_TIMEOUT)) is None:
        assert time.monotonic() < deadline, "another session maintains the segments"
    return connection


async def rolled() -> int:
    """The id of the segment that was closed now."""
    async with await maintained() as connection:
        await lifecycle.prepare(connection)
        opened = await lifecycle.roll(connection, max_hours=0, max_messages=0)
    assert opened is not None, "the segment was not rolled"
    return opened - 1


async def dropped(reserved_hours: float) -> list[int]:
    """The ids of the segments that are done."""
    async with await maintained() as connection:
        return await retention.drop_old(connection, reserved_hours)


async def entries(topic: str, queue_id: int, from_offset: int) -> list[Any]:
    """The entries of a queue with their messages."""
    facts = await topics.for_reading(topic)
    with Hold() as hold:
        return list(await queues.read(facts.id, queue_id, from_offset, 1000, hold))


async def standing(segment_id: int) -> dict[str, str]:
    """Where the partitions of a segment stand, by their table."""
    async with await connections.connect("test") as connection:
        return {part.table_name: part.state for part in await partitions.of_segment(connection, segment_id)}
