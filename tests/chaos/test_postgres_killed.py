"""kill -9 of PostgreSQL under load: what was acknowledged is kept, once, and the web processes go on by themselves."""

import asyncio
import time

import pytest
from mqbroker_client import Admin

from mqbroker.embedded.servers import postgres
from tests.broker.load import Crowd
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import RunningBroker
from tests.chaos.shops import Shop, everything

KILLS = 5
ACKNOWLEDGED_BETWEEN_KILLS = 200
OUTAGE_SECONDS = 17
# Between two questions during the outage, which are refused at once.
PACE_SECONDS = 0.1


@pytest.fixture(scope="module")
def broker(mortal_broker: RunningBroker) -> RunningBroker:
    """A broker whose PostgreSQL may be killed."""
    return mortal_broker


def test_a_process_whose_database_is_away_waits_for_it_and_logs_no_error(
    server: postgres.Server, broker: RunningBroker
) -> None:
    server.kill()
    try:
        # Actions are taken by Django's connection, all else by that of the message path.
        eventually(lambda: "work=actions" in broker.log(), within_seconds=120)
    finally:
        server.start()

    assert "the fallback failed" not in broker.log()


def test_the_control_plane_goes_on_soon_after_a_long_outage(server: postgres.Server, broker: RunningBroker) -> None:
    assert topic_is_put(broker)
    server.kill()
    try:
        ends_at = time.monotonic() + OUTAGE_SECONDS
        while time.monotonic() < ends_at:
            assert not topic_is_put(broker)
            time.sleep(PACE_SECONDS)
    finally:
        server.start()

    # A pool that tries 1, 3, 7, 15 and 31 seconds after its first attempt would wait for twice as long.
    eventually(lambda: topic_is_put(broker), within_seconds=at_this_load(5))


def topic_is_put(broker: RunningBroker) -> bool:
    status = broker.wire().call("PUT", "/v1/topics/orders", b'{"queues": 4}').status
    assert status in (200, 201, 503)
    return status != 503


async def test_what_was_acknowledged_outlives_five_kills_of_postgresql(
    server: postgres.Server, broker: RunningBroker, orders: str
) -> None:
    Admin(broker.client()).create_topic(orders, queues=4)
    pids = [web.pid for web in broker.webs]

    async with Crowd(broker.urls) as crowd:
        async with Shop(crowd, orders) as shop:
            for _ in range(KILLS):
                await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_KILLS)
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_KILLS)
        found = await everything(crowd, orders)

    assert shop.ledger.flaws(found) == []
    assert [web.pid for web in broker.webs if web.is_running()] == pids
