"""Tasks while programs, workers, brokers and databases are killed: the task of a committed order runs, once, and no
other does.

`MQ_TASK_ORDERS=5000 MQ_TASK_LOSSES=1 ./mq test tests/task_backend/test_task_shop.py -s` prints the figures of
docs/compared.md.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqbroker.embedded.servers import postgres
from tests.barrier import mariadb, places
from tests.barrier.places import Place
from tests.broker import prepared_servers
from tests.broker.running import RunningBroker
from tests.conftest import REDIS_URL
from tests.task_backend import shops
from tests.task_backend.conftest import migrated
from tests.task_backend.shops import QueueShop, Shop, Victim

pytestmark = [pytest.mark.chaos, pytest.mark.heavy, pytest.mark.timeout(shops.LONGEST_SECONDS)]
FIGURE = pytest.mark.skipif("MQ_TASK_LOSSES" not in os.environ, reason="a figure: MQ_TASK_LOSSES=1 prints it")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[postgres.Server]:
    """The broker's PostgreSQL, which may be killed."""
    server = prepared_servers.started(postgres.Server(tmp_path / "broker's"))
    yield server
    server.stop()


@pytest.fixture
def mortal_broker(database: postgres.Server, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker on it, whose processes may be killed."""
    redis = os.environ.get("REDIS_URL", REDIS_URL)
    with RunningBroker(tmp_path / "broker", database.url, redis) as running:
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[postgres.Server]:
    """A PostgreSQL of the shop's own, which may be killed."""
    server = postgres.Server(tmp_path / "shop's")
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["postgresql", "mariadb"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Victim, Place]]:
    """The shop's own server, and its database there."""
    if request.param == "postgresql":
        server: postgres.Server = request.getfixturevalue("server")
        yield server, places.of_database(server.url, "read committed")
    else:
        with mariadb.running(tmp_path / "mariadb") as running, places.of_mariadb(running) as place:
            yield running, place


def test_the_task_of_each_committed_order_runs_once_and_that_of_no_other(
    mortal_broker: RunningBroker, database: postgres.Server, home: tuple[Victim, Place], tmp_path: Path
) -> None:
    server, place = home
    own = {
        "database": server,
        "broker": mortal_broker.webs[0],
        "broker's worker": mortal_broker.worker,
        "broker's database": database,
    }
    # Each kill of a worker is an attempt of the tasks that the worker has received.
    with migrated(mortal_broker, place.url, tmp_path, options={"MAX_RETRIES": 100}) as project:
        shop = Shop(project, place, "within")
        shop.after_kills(own)
        orders, runs = shop.orders, shop.runs

    print(f"{place.kind}: {orders.total()} orders, {runs.total()} runs, {shop.kills.total()} kills: {dict(shop.kills)}")
    assert orders.total() >= shops.ORDERS
    assert (orders - runs, runs - orders) == (Counter(), Counter())


@FIGURE
@pytest.mark.parametrize("way", ["within", "behind"])
def test_a_queue_in_another_database_loses_tasks_or_runs_them_without_their_order(
    broker: RunningBroker, server: postgres.Server, tmp_path: Path, way: str
) -> None:
    pytest.importorskip("django_tasks_db")
    more = {"apps": ["django_tasks_db"], "tasks": {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}}
    # On MariaDB its migrations fail where a router keeps its table out of the program's database.
    place = places.of_database(server.url, "read committed")
    other = postgres.Server(tmp_path / "queue's")
    other.start()
    try:
        with migrated(broker, place.url, tmp_path, other=other.url, **more) as project:
            shop = QueueShop(project, place, way)
            shop.after_kills({"database": server, "queue's database": other})
            orders, runs, enqueued = shop.orders, shop.runs, shop.enqueued
    finally:
        other.stop()

    lost, strange = orders.keys() - runs.keys(), runs.keys() - orders.keys()
    print(
        f"{way}: {orders.total()} orders, {runs.total()} runs, {shop.kills.total()} kills: {len(lost)} lost, of which "
        f"{len(lost - enqueued.keys())} never enqueued; {len(strange)} without an order"
    )
    assert lost or strange
