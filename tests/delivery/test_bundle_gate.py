"""Bundles wait for earlier versions: while a process that knows no bundles beats, each delivery has a receipt."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.deliveries import count
from tests.broker.load import Crowd
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker

pytestmark = pytest.mark.one_cell(because="only the control has bundles", control=True)

# The statement of an earlier version, and the name of one of its processes.
BEAT_BEFORE = """
INSERT INTO heartbeat (process, kind, beaten_at) VALUES (%s, 'web', now())
ON CONFLICT (process) DO UPDATE SET beaten_at = now()
"""
EARLIER = "web 1 at earlier"
END = "DELETE FROM heartbeat WHERE bundles_at IS DISTINCT FROM beaten_at"
BUNDLES = "SELECT count(*) FROM bundle"
MESSAGES, TURNS = 6000, 20


@pytest.fixture
def database(broker: RunningBroker) -> Iterator[psycopg.Connection[Any]]:
    """A session of the control, which has no bundle. Afterwards no process of an earlier version has beaten."""
    with psycopg.connect(broker.direct_url, autocommit=True) as connection:
        while value(connection, BUNDLES):
            connection.execute(BEAT_BEFORE, [EARLIER])
        connection.execute(END)
        yield connection
        connection.execute(END)


def value(database: psycopg.Connection[Any], query: str) -> Any:
    [row] = database.execute(query.encode()).fetchall()
    return row[0]


@pytest.mark.parametrize("before", [EARLIER, None], ids=["another-name", "the-name-of-a-process-of-this-version"])
def test_a_heartbeat_of_an_earlier_version_gives_each_delivery_a_receipt(
    database: psycopg.Connection[Any], producer: Producer, consumer: Consumer, orders: str, before: str | None
) -> None:
    made = [f"order {number}".encode() for number in range(8)]
    for body in made:
        producer.send(orders, body, queue_id=0)
    eventually(lambda: value(database, "SELECT count(*) FROM heartbeat WHERE bundles_at = beaten_at"))
    found = consumer.receive(orders, max_messages=5)
    consumer.ack(found[:2])
    assert value(database, BUNDLES) == 1

    database.execute(BEAT_BEFORE, [before or value(database, "SELECT process FROM heartbeat LIMIT 1")])

    assert value(database, BUNDLES) == 0
    assert count(database, consumer.group) == 3
    assert [one.status for one in consumer.ack(found[1:])] == [410, 200, 200, 200]
    if before:
        rest = consumer.receive(orders)
        assert (bodies(rest), value(database, BUNDLES)) == (made[5:], 0)
        assert [one.status for one in consumer.ack(rest)] == [200] * 3


async def test_a_first_heartbeat_of_an_earlier_version_finds_the_bundles_of_receives_under_way(
    broker: RunningBroker, database: psycopg.Connection[Any], consumer: Consumer, orders: str
) -> None:
    """Also then each delivery is settled by its handle, and none comes twice."""
    group, found, statuses = f"/v1/consumer-groups/{consumer.group}", Counter[str](), Counter[int]()
    left: list[int] = []

    async def consume(crowd: Crowd) -> None:
        while found.total() < MESSAGES:
            asked = {"topic": orders, "max_messages": 8, "invisible_seconds": 3600}
            _, answer = await crowd.post(f"{group}/receive", asked)
            found.update(one["message"]["body"] for one in answer["messages"])
            if handles := [one["receipt_handle"] for one in answer["messages"]]:
                _, acked = await crowd.post(f"{group}/ack", {"receipt_handles": handles})
                statuses.update(one["status"] for one in acked["results"])

    def comes_and_goes() -> None:
        for _ in range(TURNS):
            if found.total() < MESSAGES:
                eventually(lambda: value(database, BUNDLES) or found.total() >= MESSAGES)
                database.execute(BEAT_BEFORE, [EARLIER])
                left.append(max(value(database, BUNDLES) for _ in range(10)))
                database.execute(END)

    async with Crowd(broker.urls) as crowd:
        for start in range(0, MESSAGES, 500):
            numbers = range(start, start + 500)
            await crowd.bulk({"op": "send", "topic": orders, "body": f"order {number}"} for number in numbers)
        await asyncio.gather(asyncio.to_thread(comes_and_goes), *(consume(crowd) for _ in range(16)))

    assert left
    assert set(left) == {0}
    assert (len(found), found.total(), statuses) == (MESSAGES, MESSAGES, {200: MESSAGES})
