"""A broker that is stopped under load, for as long as an update may take: with `"keep"` its producers do not notice.

`MQ_OUTAGE_SECONDS=60 ./mq test tests/chaos/test_broker_stopped.py` takes as long as an operator would.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from mqbroker_client import Consumer
from mqbroker_client.contrib.sqlalchemy import Outbox
from sqlalchemy.orm import Session, sessionmaker

from tests.barrier import places
from tests.barrier.places import Place
from tests.barrier.test_kept import THREADS, buy, outbox_of
from tests.broker import databases
from tests.broker.characters import name
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import QUICK, RunningBroker
from tests.broker.tellings import received_until_empty

OUTAGE_SECONDS = float(os.environ.get("MQ_OUTAGE_SECONDS", "3"))
# So long the broker is there before the outage and after it.
THERE_SECONDS = 2.0
BETWEEN_ORDERS_SECONDS = 0.02
# A half whose end is lost has to be asked about until the process that answers is there again.
SETTINGS = QUICK | {"MQBROKER_TRANSACTION_CHECK_MAX": "15"}


@pytest.fixture
def stoppable(prepared: str, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker of this test alone."""
    with databases.copied(prepared) as url:
        broker = RunningBroker(tmp_path / "broker", url, os.environ["REDIS_URL"], SETTINGS)
        with broker:
            yield broker


@contextmanager
def answering(outbox: Outbox) -> Iterator[None]:
    """The process that answers checks and sends kept messages, `manage.py mqbroker checks` in Django; here a thread."""
    stop = threading.Event()
    work = threading.Thread(target=outbox.work.run, args=(stop,))
    work.start()
    try:
        yield
    finally:
        stop.set()
        work.join()


def stop(broker: RunningBroker) -> None:
    """Ends all of its processes, as an operator does."""
    for child in broker.children:
        child.ask_to_stop()
    for child in broker.children:
        child.stop()


def start(broker: RunningBroker) -> None:
    for child in broker.children:
        child.start()
    broker.wait_until_ready()


@pytest.mark.timeout(1800)
def test_no_transaction_fails_and_each_message_arrives_once(stoppable: RunningBroker) -> None:
    topic, over = name("orders"), threading.Event()

    def buy_on(outbox: Outbox, sessions: "sessionmaker[Session]", customer: int) -> list[str]:
        bought: list[str] = []
        while not over.wait(BETWEEN_ORDERS_SECONDS):
            bought.append(f"{customer}-{len(bought)}")
            buy(outbox, sessions, topic, bought[-1])
        return bought

    with places.postgresql("read committed") as place:
        place.barrier.create_table()
        with (
            outbox_of(place, stoppable.client(), on_unavailable="keep") as (outbox, sessions),
            answering(outbox),
        ):
            with ThreadPoolExecutor(THREADS) as customers:
                trade = [customers.submit(buy_on, outbox, sessions, customer) for customer in range(THREADS)]
                time.sleep(THERE_SECONDS)
                stop(stoppable)
                time.sleep(OUTAGE_SECONDS)
                kept = count_of_kept(place)
                start(stoppable)
                time.sleep(THERE_SECONDS)
                over.set()
                bought = [order_id for one in trade for order_id in one.result()]
            began = time.monotonic()
            within_seconds = at_this_load(30 + 5 * OUTAGE_SECONDS)
            eventually(lambda: count_of_kept(place) == 0, within_seconds)
            eventually(lambda: not pending(stoppable, place), within_seconds)
            print(f"{len(bought)} transactions, {kept} kept, sent within {time.monotonic() - began:.1f} s")

    found = received_until_empty(Consumer(stoppable.client(), name("coupons")), topic)
    assert Counter(delivery.body.decode() for delivery in found) == Counter(bought)
    assert kept > OUTAGE_SECONDS


def count_of_kept(place: Place) -> int:
    [(count,)] = place.run("SELECT count(*) FROM mqbroker_barrier WHERE messages IS NOT NULL")
    return int(count)


def pending(broker: RunningBroker, place: Place) -> int:
    """Transactions of the producer that are not decided."""
    return int(broker.wire().get(f"/v1/producer-groups/{place.group}").document["pending"])
