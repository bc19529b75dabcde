"""Tasks while programs, relays, workers, RabbitMQ and brokers are killed: that of a committed order runs, once."""

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from mqbroker_client.contrib.celery.relay import GROUP
from mqbroker_client.contrib.celery.tasks import TOPIC

from mqbroker.embedded.commands import ROOT
from tests.broker import cells, databases
from tests.broker.forks import ForkedChild
from tests.broker.polling import eventually
from tests.broker.receiving import let_deliveries_expire
from tests.broker.running import API_KEY, RunningBroker
from tests.conftest import REDIS_URL
from tests.relay import rabbit

pytestmark = [pytest.mark.chaos, pytest.mark.heavy, pytest.mark.timeout(900)]
# MQ_TASK_ORDERS=5000 in the environment: some minutes.
ORDERS = int(os.environ.get("MQ_TASK_ORDERS", "300"))
# Between two kills: the load.
PAUSE_SECONDS = 1.5


@pytest.fixture
def broker(prepared: str, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker whose web process may be killed."""
    with cells.installation(prepared) as url:
        folder = tmp_path / "broker"
        with RunningBroker(folder, url, os.environ.get("REDIS_URL", REDIS_URL)) as running:
            yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[rabbit.Server]:
    """Celery's broker."""
    with rabbit.running(tmp_path / "rabbitmq") as running:
        yield running


class Shop:
    """The processes of the shop, and its database."""

    def __init__(self, broker: RunningBroker, server: rabbit.Server, url: str, folder: Path, way: str) -> None:
        self.url = url
        own = {"MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY, "CELERY_BROKER_URL": server.url}
        path = os.pathsep.join([str(ROOT), str(ROOT / "client")])
        settings = {"DJANGO_SETTINGS_MODULE": "tests.tasks.shop.settings", "SHOP_DATABASE_URL": url, "PYTHONPATH": path}
        self._environment = os.environ | own | settings
        self._folder = folder
        self.program = self._child("program", "-m", "tests.tasks.shop.ordering", way)
        self.checks = self._child("checks", "-m", "django", "mqbroker", "checks")
        self.relay = self._child("relay", "-m", "django", "mqbroker", "celery-relay", "tests.tasks.shop.celery")
        self.worker = self._child("worker", "-m", "celery", "-A", "tests.tasks.shop", "worker", "--pool", "solo")

    def _child(self, name: str, *words: str) -> ForkedChild:
        command = [sys.executable, *words]
        return ForkedChild(name, command, self._environment, self._folder / f"{name}.log", ROOT, stop_seconds=30)

    def prepare(self) -> None:
        """Makes its tables."""
        made = self._child("migrate", "-m", "django", "migrate", "--run-syncdb")
        made.start()
        eventually(lambda: not made.is_running(), within_seconds=60)

    def rows(self, statement: str) -> list[int]:
        """Numbers of its database."""
        with psycopg.connect(self.url) as session:
            return [number for (number,) in session.execute(statement).fetchall()]

    @property
    def orders(self) -> set[int]:
        return set(self.rows("SELECT id FROM shop_order"))

    @property
    def coupons(self) -> Counter[int]:
        return Counter(self.rows('SELECT "order" FROM shop_coupon'))


def coupons_after_kills(
    broker: RunningBroker, server: rabbit.Server, folder: Path, way: str
) -> tuple[set[int], Counter[int]]:
    """The committed orders, and how often the task of each ran, after processes were killed among them."""
    with databases.fresh() as url, ExitStack() as stack:
        shop = Shop(broker, server, url, folder, way)
        shop.prepare()
        mortal = {"program": shop.program, "relay": shop.relay, "worker": shop.worker, "checks": shop.checks}
        for child in mortal.values():
            stack.callback(child.stop)
            child.start()
        turns = 0
        chosen = random.Random(7)
        while len(shop.orders) < ORDERS or turns < 2 * len(mortal):
            time.sleep(PAUSE_SECONDS)
            victim = [*mortal, "RabbitMQ", "broker"][turns % (len(mortal) + 2)]
            turns += 1
            if victim == "RabbitMQ":
                server.kill()
                server.start()
            elif victim == "broker":
                broker.webs[0].kill()
                time.sleep(chosen.random())  # it stays away for a moment
                broker.webs[0].start()
            else:
                mortal[victim].kill()
                if victim == "relay":
                    let_deliveries_expire(broker, TOPIC, GROUP)
                mortal[victim].start()
            start_again(mortal.values())
        shop.program.kill()
        broker.wait_until_ready()
        if way == "behind":
            eventually(lambda: server.waiting("celery") == 0, within_seconds=600)
        settled(shop)
        return shop.orders, shop.coupons


def start_again(children: Iterable[ForkedChild]) -> None:
    """Starts those that have ended by themselves, as systemd does: a worker that begins ends with RabbitMQ."""
    for child in children:
        if not child.is_running():
            child.start()


def settled(shop: Shop) -> None:
    """Returns once each order has its coupon, or no further one has come for a minute."""
    found, last_at = -1, time.monotonic()
    while not shop.orders <= shop.coupons.keys() and time.monotonic() - last_at < 60:
        start_again([shop.relay, shop.worker, shop.checks])
        if found != (now := shop.coupons.total()):
            found, last_at = now, time.monotonic()
        time.sleep(0.5)  # nothing says that no task is left


def test_the_task_of_each_committed_order_runs_once_and_that_of_no_other(
    broker: RunningBroker, server: rabbit.Server, tmp_path: Path
) -> None:
    orders, coupons = coupons_after_kills(broker, server, tmp_path, "transactional")

    assert len(orders) >= ORDERS
    assert coupons == Counter(orders)


@pytest.mark.skipif("MQ_TASK_LOSSES" not in os.environ, reason="a figure of the docs: MQ_TASK_LOSSES=1 prints it")
def test_behind_the_commit_tasks_are_lost(broker: RunningBroker, server: rabbit.Server, tmp_path: Path) -> None:
    orders, coupons = coupons_after_kills(broker, server, tmp_path, "behind")

    print(f"{len(orders)} orders: {len(orders - coupons.keys())} without a task, {coupons.total()} runs")
    assert orders - coupons.keys()
