"""Outboxes while processes die: each committed row is sent once, in the order of its key, whatever ends when."""

import json
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import psycopg
import pytest

from mqbroker.embedded.servers import postgres
from tests.broker import cells
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.conftest import REDIS_URL
from tests.control.operators import Operator
from tests.outboxes.conftest import Shop, table

pytestmark = pytest.mark.chaos
# MQ_OUTBOX_ROUNDS=30 in the environment: some ten minutes.
ROUNDS = int(os.environ.get("MQ_OUTBOX_ROUNDS", "2"))
WRITERS = 4
KEYS = 6
SHOP = """
CREATE TABLE customer (name text PRIMARY KEY, orders integer NOT NULL DEFAULT 0);
INSERT INTO customer SELECT 'customer ' || n FROM generate_series(0, %s) AS n;
CREATE TABLE shop_order (customer text, number integer, PRIMARY KEY (customer, number));
"""


@pytest.fixture(scope="module")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker of these tests' own with two web processes, which may be killed."""
    with cells.installation(prepared) as database_url:
        folder = tmp_path_factory.mktemp("mortal")
        running = RunningBroker(folder, database_url, os.environ.get("REDIS_URL", REDIS_URL), webs=2, tasks=False)
        with running:
            yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Server]:
    """The producers' PostgreSQL, which may be killed."""
    server = postgres.Server(tmp_path_factory.mktemp("source"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def shop(broker: RunningBroker, server: postgres.Server) -> Shop:
    """A shop on that server."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(table())
        connection.execute(SHOP % KEYS)
    made = Shop(Operator(broker.url, API_KEY), server.url, broker)
    made.prepare()
    return made


class Orders:
    """Customers who order until they are stopped; each order is a row, and a message, of one transaction."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._over = threading.Event()
        self._writers = [threading.Thread(target=self._order, args=(number,)) for number in range(WRITERS)]

    def __enter__(self) -> None:
        for writer in self._writers:
            writer.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for writer in self._writers:
            writer.join()

    def _order(self, number: int) -> None:
        random = Random(number)
        while not self._over.is_set():
            with suppress(psycopg.OperationalError), psycopg.connect(self._shop.url) as session:
                while not self._over.is_set():
                    self._order_once(session, random)
            time.sleep(0.1)  # the server is away: a new attempt follows

    def _order_once(self, session: psycopg.Connection, random: Random) -> None:
        customer = f"customer {random.randrange(KEYS)}"
        counted = "UPDATE customer SET orders = orders + 1 WHERE name = %s RETURNING orders"
        row = session.execute(counted, [customer]).fetchone()
        assert row is not None
        session.execute("INSERT INTO shop_order VALUES (%s, %s)", [customer, row[0]])
        body = json.dumps([customer, row[0]])
        session.execute("SELECT mq_send(%s, %s, sharding_key => %s)", [self._shop.topic, body, customer])
        if random.random() < 0.1:
            session.rollback()
        else:
            session.commit()
        time.sleep(0.02)  # four writers leave the processor to what is tested


def test_each_committed_order_is_sent_once_and_in_order_while_webs_and_the_source_die(
    shop: Shop, broker: RunningBroker, server: postgres.Server
) -> None:
    shop.register()
    with Orders(shop):
        for number in range(ROUNDS):
            web = broker.webs[number % 2]
            # Between two faults orders have to come: the pauses are the load, and nothing is awaited by them.
            time.sleep(1)
            web.kill()
            time.sleep(1)
            web.start()
            time.sleep(1)
            server.kill()
            server.start()
            time.sleep(1)
            # Frozen, perhaps within a transaction at the source: the other web process goes on once that is ended.
            web.send(signal.SIGSTOP)
            time.sleep(3)
            web.send(signal.SIGCONT)
    broker.wait_until_ready()
    eventually(shop.is_empty, within_seconds=90)

    with psycopg.connect(shop.url) as session:
        committed = set(session.execute("SELECT customer, number FROM shop_order").fetchall())
        refused = session.execute("SELECT reason FROM mqbroker_outbox_refused").fetchall()
    found = [tuple(json.loads(message["body"])) for message in shop.receives_all(len(committed))]

    assert refused == []
    assert len(committed) > 100
    assert len(found) == len(set(found)), "an order was sent twice"
    assert set(found) == committed
    by_customer: defaultdict[str, list[int]] = defaultdict(list)
    for customer, order in found:
        by_customer[customer].append(order)
    for orders in by_customer.values():
        assert orders == sorted(orders)
