"""Jobs of pgmq, by the SQL that pgmq's package for Python contains: it needs no compiled extension."""

from importlib import metadata

import psycopg
from psycopg.types.json import Jsonb

from tools.bench.jobs import CONSUMERS, DATABASE_URL, PRODUCERS, Times, paced, run_all

SEND = "SELECT pgmq.send('jobs', %s)"
# Reads at most 32 messages, invisible for 30 s, and waits at most 1 s, with pgmq's own pause between two looks.
RECEIVE = "SELECT msg_id, message FROM pgmq.read_with_poll('jobs', 30, 32, 1)"
DELETE = "SELECT pgmq.delete('jobs', %s::bigint[])"


def prepare() -> None:
    """Installs pgmq's functions and creates the queue."""
    schema = metadata.distribution("pgmq").locate_file("pgmq/sql/pgmq.sql")
    with open(str(schema), encoding="utf-8") as file, psycopg.connect(DATABASE_URL, autocommit=True) as connection:
        connection.execute(file.read().encode())
        connection.execute("SELECT pgmq.create('jobs')")


async def _producer(number: int, times: Times) -> None:
    async with await psycopg.AsyncConnection.connect(DATABASE_URL, autocommit=True) as connection:
        async for due in paced(number):
            await connection.execute(SEND, (Jsonb({"due": due}),))
            times.note(due)


async def _consumer(_: int, times: Times) -> None:
    async with await psycopg.AsyncConnection.connect(DATABASE_URL, autocommit=True) as connection:
        while True:
            rows = await (await connection.execute(RECEIVE)).fetchall()
            for _, message in rows:
                times.note(message["due"])
            await connection.execute(DELETE, ([number for number, _ in rows],))


def produce() -> None:
    """Sends jobs until the process is stopped."""
    run_all(_producer, "produce", PRODUCERS)


def consume() -> None:
    """Reads and deletes jobs until the process is stopped."""
    run_all(_consumer, "consume", CONSUMERS)
