"""PgBouncer in front of the database: the broker behind it keeps its promises, and refuses one that cannot serve.

`MQ_POOLER=transaction ./mq test tests/store tests/transactions` has all tests of these folders through one.
"""

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Producer

from mqbroker.embedded import commands
from store.db import guards
from tests.broker import characters, databases, forks, poolers
from tests.broker.load import Crowd
from tests.broker.polling import eventually
from tests.broker.poolers import Pooler
from tests.broker.ports import free_port
from tests.broker.running import QUICK, RunningBroker
from tests.chaos.shops import Shop, everything

# Fewer sessions than a web process opens connections.
FEW = 4
KILLS = 3
ACKNOWLEDGED_BETWEEN_KILLS = 200
LISTENERS = (
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'mqbroker-listener' AND datname = current_database()"
)


@pytest.fixture(scope="module", params=["session", "transaction"])
def pooler(request: pytest.FixtureRequest, prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooler]:
    size = FEW if request.param == "transaction" else 60
    folder = tmp_path_factory.mktemp("pooler")
    with databases.copied(prepared) as url, poolers.pooler(folder, url, request.param, size=size) as pooler:
        yield pooler


@pytest.fixture(scope="module")
def broker(pooler: Pooler, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Two web processes, a worker and beat behind the pooler."""
    settings = QUICK | pooler.settings
    behind = RunningBroker(tmp_path_factory.mktemp("behind"), pooler.url, os.environ["REDIS_URL"], settings, webs=2)
    behind.prepare()
    poolers.ready(pooler)
    with behind:
        yield behind
    assert "Traceback" not in behind.log()


def test_transactions_delays_and_receives_work(broker: RunningBroker, orders: str) -> None:
    producer = Producer(broker.client(), characters.name("shop"))
    consumer = Consumer(broker.client(web=1), characters.name("coupons"))
    for number in range(20):
        begun = producer.begin(orders, str(number).encode(), tags="even" if number % 2 == 0 else "odd")
        begun.commit() if number % 2 == 0 else begun.rollback()
    producer.send(orders, b"later", delay_seconds=1)

    found: set[bytes] = set()

    def receives() -> bool:
        for delivery in consumer.receive(orders, max_messages=32, wait_seconds=1):
            found.add(delivery.message.body)
            consumer.ack([delivery])
        return len(found) == 11

    eventually(receives)
    assert found == {str(number).encode() for number in range(0, 20, 2)} | {b"later"}


def test_a_receive_that_waits_is_woken_by_a_send_at_another_process(broker: RunningBroker, orders: str) -> None:
    producer = Producer(broker.client(), characters.name("shop"))
    consumer = Consumer(broker.client(web=1), characters.name("coupons"))
    producer.send(orders, b"first")
    [first] = eventually(lambda: consumer.receive(orders, wait_seconds=1))
    consumer.ack([first])

    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(consumer.receive, orders, wait_seconds=20)
        eventually(lambda: listens_twice(broker))
        producer.send(orders, b"second")
        [second] = waiting.result()

    assert second.message.body == b"second"


def listens_twice(broker: RunningBroker) -> bool:
    """Whether both web processes have a session of their own for notices."""
    with psycopg.connect(broker.environment["DIRECT_DATABASE_URL"]) as session:
        return len(session.execute(LISTENERS).fetchall()) >= 2


async def test_what_was_acknowledged_outlives_the_end_of_the_pooler(
    broker: RunningBroker, pooler: Pooler, orders: str
) -> None:
    await asyncio.to_thread(Admin(broker.client()).create_topic, orders, queues=4)

    async with Crowd(broker.urls) as crowd:
        async with Shop(crowd, orders) as shop:
            for _ in range(KILLS):
                await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_KILLS)
                await asyncio.to_thread(pooler.child.kill)
                await asyncio.to_thread(pooler.child.start)
                await asyncio.to_thread(poolers.ready, pooler)
            await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN_KILLS)
        found = await everything(crowd, orders)

    assert shop.ledger.flaws(found) == []


def refused_start(settings: dict[str, str], url: str, broker: RunningBroker) -> str:
    """What a web process says that does not start."""
    words = commands.python("-m", "mqbroker.web", "--port", str(free_port()))
    environment = broker.environment | settings | {"DATABASE_URL": url}
    done = forks.run(words, environment)
    assert done.returncode
    return done.stderr + done.stdout


@pytest.fixture
def bare(prepared: str) -> Iterator[str]:
    """The URL of a database whose role has no defaults."""
    with databases.copied(prepared) as url:
        yield url


def test_sessions_without_the_settings_of_the_broker_are_refused(
    bare: str, tmp_path: Path, broker: RunningBroker, pooler: Pooler
) -> None:
    with poolers.pooler(tmp_path, bare, pooler.mode) as unset:
        poolers.ready(unset)
        assert guards.UNSET in refused_start(unset.settings, unset.url, broker)


def test_a_pooler_that_knows_no_prepared_statements_is_refused(
    prepared: str, tmp_path: Path, broker: RunningBroker, pooler: Pooler
) -> None:
    with poolers.pooler(tmp_path, pooler.direct_url, "transaction", more="max_prepared_statements = 0") as forgetful:
        poolers.ready(forgetful)
        assert guards.UNPREPARED in refused_start(forgetful.settings, forgetful.url, broker)


def test_a_direct_url_that_leads_to_a_pooler_is_refused(tmp_path: Path, broker: RunningBroker, pooler: Pooler) -> None:
    with poolers.pooler(tmp_path, pooler.direct_url, "transaction") as other:
        poolers.ready(other)
        through = other.settings | {"DIRECT_DATABASE_URL": other.url}
        said = refused_start(through, other.url, broker)
    assert guards.DIRECT in said or guards.STRIPPED in said


def test_a_pooler_without_a_direct_url_is_refused(broker: RunningBroker, pooler: Pooler) -> None:
    said = refused_start({"DIRECT_DATABASE_URL": ""}, pooler.url, broker)

    assert f"MQBROKER_DATABASE_POOLER={pooler.mode} needs DIRECT_DATABASE_URL" in said


def test_no_cell_joins_where_sessions_are_shared(bare: str, broker: RunningBroker) -> None:
    settings = {"MQBROKER_DATABASE_POOLER": "transaction"}
    done = forks.run(commands.manage("cells", "add", "c1", bare), broker.environment | settings)

    assert done.returncode
    assert "several cells take no pooling by transaction" in (done.stderr + done.stdout).lower()
