"""Accidents while delayed messages are released: each of them comes once, without a hole, and never early."""

import asyncio

import psycopg
import pytest
from mqbroker_client import Admin

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from mqbroker.embedded.servers import postgres
from tests.broker import forks
from tests.broker.load import Crowd
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.chaos import delays

# Every second one at a level of 1 to 3 s, the others by timers, spread over 5 s.
DELAYS: list[Document] = [
    {"delay_level": 1 + number // 2 % 5} if number % 2 else {"delay_seconds": 1 + number / 80} for number in range(320)
]
# Released between two kills.
BETWEEN = 40


@pytest.fixture(scope="module")
def broker(mortal_broker: RunningBroker) -> RunningBroker:
    """A broker whose PostgreSQL may be killed."""
    return mortal_broker


async def test_messages_that_two_beats_and_two_workers_release_come_once_and_not_early(
    broker: RunningBroker, orders: str
) -> None:
    Admin(broker.client()).create_topic(orders, queues=4)
    others = [
        forks.ForkedChild(name, command, broker.environment, broker.folder / f"{name}.log", ROOT)
        for name, command in (
            ("worker-2", commands.worker()),
            ("beat-2", commands.beat(broker.folder / "beat-schedule-2")),
        )
    ]

    try:
        before = sessions(broker)
        for child in others:
            child.start()
        # A worker's first tick opens its session.
        await asyncio.to_thread(eventually, lambda: sessions(broker) > before)
        async with Crowd(broker.urls) as crowd:
            promises = await delays.send(crowd, orders, DELAYS)
            await delays.has_released(crowd, orders, len(DELAYS))
            flaws = await delays.flaws(crowd, orders, promises)
        running = [child.is_running() for child in (*broker.children, *others)]
    finally:
        for child in others:
            child.stop()

    assert flaws == []
    assert all(running)


async def test_messages_that_are_due_while_worker_beat_and_postgresql_are_killed_come_once_and_not_early(
    server: postgres.Server, broker: RunningBroker, orders: str
) -> None:
    Admin(broker.client()).create_topic(orders, queues=4)
    victims: list[Child | postgres.Server] = [broker.worker, server, broker.beat, broker.worker, server]

    async with Crowd(broker.urls) as crowd:
        promises = await delays.send(crowd, orders, DELAYS)
        for number, victim in enumerate(victims, start=1):
            await delays.has_released(crowd, orders, BETWEEN * number)
            await asyncio.to_thread(victim.kill)
            await asyncio.to_thread(victim.start)
        await delays.has_released(crowd, orders, len(DELAYS))
        flaws = await delays.flaws(crowd, orders, promises)

    assert flaws == []


def sessions(broker: RunningBroker) -> int:
    """Sessions in the database that processes of the broker read by."""
    with psycopg.connect(broker.database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mqbroker-reads'"
        ).fetchone()
    assert row is not None
    found: int = row[0]
    return found
