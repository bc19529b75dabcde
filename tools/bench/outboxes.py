"""Outboxes: rows of a producer until they are received, and transactions of one `mq_send` each.

The outbox lies in a schema of the broker's own database, made by docs/sql.md of the checkout that is measured. So the
CPU of PostgreSQL includes both databases and the producer's sessions.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec
import psycopg

from tools.bench import load
from tools.bench.arrivals import Arrivals
from tools.bench.broker import Broker
from tools.bench.load import Connection, Measured

PER_SECOND = 100
PRODUCERS = 8
SCHEMA, TOPIC = "shop", "shop"
BODY = "x" * 200
TABLE = re.compile(r"^## The table\n.*?```sql\n(.*?)```", re.DOTALL | re.MULTILINE)
# A plain table of the producer with the columns of an outbox.
BARE = """
CREATE TABLE bare (
    seq bigserial PRIMARY KEY, id uuid NOT NULL DEFAULT gen_random_uuid(), topic text NOT NULL, body text,
    body_bytes bytea, tags text, keys text[], sharding_key text, properties jsonb, delay_level integer,
    delay_seconds double precision, deliver_at timestamptz, traceparent text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""
SEND, INSERT = "SELECT mq_send(%s, %s)", "INSERT INTO bare (topic, body) VALUES (%s, %s) RETURNING id"


@dataclass(frozen=True)
class Rows:
    """The case of the rows of an outbox: `steady` or one by one (`lone`) until a consumer receives each, by latency, or
    transactions that `send` one each while the broker drains them, by rate."""

    name: str
    work: str
    operations: int = 1
    kind: str | None = None

    def over(self, running: Broker, seconds: float, statement: str = SEND) -> Measured:
        """The latencies from each commit to the arrival, or of the transactions; of INSERT, their yardstick."""
        if self.work == "send":
            return load.run(_transactions(running, statement, seconds))
        return load.run(_arrivals(running, seconds, one_by_one=self.work == "lone"))


CASES = (
    Rows(f"outbox rows at {PER_SECOND}/s to received", "steady"),
    Rows("outbox rows to received, one by one", "lone"),
    Rows(f"transactions of one mq_send, {PRODUCERS} producers", "send", kind="rows"),
)


async def _arrivals(running: Broker, seconds: float, *, one_by_one: bool) -> Measured:
    arrivals, began = Arrivals(), 0.0

    async def insert(session: psycopg.AsyncConnection, name: str) -> None:
        # A message may arrive before its producer has seen the commit.
        await session.execute(SEND, [TOPIC, arrivals.begin(name)])
        arrivals.begin(name)

    async def steady(number: int, session: psycopg.AsyncConnection) -> None:
        for row in range(number, int(PER_SECOND * seconds), PRODUCERS):
            await asyncio.sleep(max(0.0, began + row / PER_SECOND - time.monotonic()))
            await insert(session, str(row))

    async def lone(session: psycopg.AsyncConnection) -> None:
        while time.monotonic() - began < seconds:
            number = len(arrivals.latencies)
            await insert(session, str(number))
            while len(arrivals.latencies) == number:
                arrivals.come.clear()
                await arrivals.come.wait()

    async with _producers(running) as sessions, arrivals.consumed(running.port, "outbox", TOPIC):
        began = time.monotonic()
        await (lone(sessions[0]) if one_by_one else asyncio.gather(*map(steady, range(PRODUCERS), sessions)))
        took = time.monotonic() - began
    return Measured(took, arrivals.latencies)


async def _transactions(running: Broker, statement: str, seconds: float) -> Measured:
    measured = Measured()

    async def producer(session: psycopg.AsyncConnection) -> None:
        while (began := time.perf_counter()) - start < seconds:
            await session.execute(statement, [TOPIC, BODY])
            measured.latencies.append(time.perf_counter() - began)

    async with _producers(running) as sessions:
        start = time.perf_counter()
        await asyncio.gather(*map(producer, sessions))
        measured.seconds = time.perf_counter() - start
    return measured


@contextlib.asynccontextmanager
async def _producers(running: Broker) -> AsyncIterator[list[psycopg.AsyncConnection]]:
    """The sessions of the producers, in which each statement is a transaction; the outbox is made at the first call."""
    async with contextlib.AsyncExitStack() as stack:
        sessions = []
        for _ in range(PRODUCERS):
            connecting = psycopg.AsyncConnection.connect(running.database_url, autocommit=True, prepare_threshold=0)
            sessions.append(await stack.enter_async_context(await connecting))
            await sessions[-1].execute(f"SET search_path TO {SCHEMA}".encode())
        found = await sessions[0].execute("SELECT to_regnamespace(%s) IS NULL", [SCHEMA])
        if await found.fetchone() == (True,):
            await _make(running, sessions[0])
        yield sessions


async def _make(running: Broker, session: psycopg.AsyncConnection) -> None:
    table = TABLE.search((running.checkout.root / "docs" / "sql.md").read_text(encoding="utf-8"))
    assert table is not None
    await session.execute(f"CREATE SCHEMA {SCHEMA}; {table[1]}; {BARE}".encode(), prepare=False)
    connection = await Connection.open(running.port)
    await connection.ask("PUT", f"/v1/topics/{TOPIC}", b"{}")
    given = {"url": running.database_url, "schema": SCHEMA, "topics": [TOPIC]}
    status, answer = await connection.ask("PUT", "/v1/outboxes/shop", msgspec.json.encode(given))
    if status != 201:
        raise RuntimeError(f"the outbox cannot be drained: {answer.decode()}")
