"""While the broker is away, `on_unavailable="keep"` lets local transactions commit; each message arrives once."""

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from mqbroker_client import Broker, Consumer, Producer
from mqbroker_client.barrier.answering import RegularWork
from mqbroker_client.barrier.kept import KeptMessages
from mqbroker_client.contrib.sqlalchemy import Outbox
from mqbroker_client.core.errors import Unreachable
from opentelemetry import trace
from sqlalchemy.orm import Session, sessionmaker

from tests.barrier import places
from tests.barrier.local import engine_url
from tests.barrier.places import Place
from tests.broker.characters import name
from tests.broker.polling import at_this_load, eventually
from tests.broker.proxy import LossyProxy
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.client.servers import Silence, scripted
from tests.client.test_coalescing import results
from tests.client.test_tracing import TRACES, span

THREADS = 4
AWAY = Broker("http://127.0.0.1:1", API_KEY)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with places.postgresql("read committed") as made:
        made.barrier.create_table()
        yield made


@contextmanager
def outbox_of(place: Place, broker: Broker, **options: str) -> "Iterator[tuple[Outbox, sessionmaker[Session]]]":
    engine = sa.create_engine(engine_url(place.url), pool_size=THREADS)
    outbox = Outbox(Producer(broker, place.group), engine, **options)  # type: ignore[arg-type]  # "keep"
    sessions = sessionmaker(engine)
    outbox.listen(sessions)
    yield outbox, sessions
    engine.dispose()


def buy(outbox: Outbox, sessions: "sessionmaker[Session]", topic: str, order_id: str, **fields: Any) -> None:
    with sessions.begin() as session:
        session.execute(sa.text("INSERT INTO orders VALUES (:order_id)"), {"order_id": order_id})
        outbox.send(session, topic, order_id, **fields)


def work_until_all_is_sent(place: Place, broker: RunningBroker) -> None:
    """What the process that answers checks does, until nothing is kept."""
    producer = Producer(broker.client(), place.group)
    work = RegularWork(producer, place.barrier, KeptMessages(producer, place.barrier))

    def nothing_is_left() -> bool:
        work.once()
        [(kept,)] = place.run("SELECT count(*) FROM mqbroker_barrier WHERE messages IS NOT NULL")
        return not kept and not broker.wire().get(f"/v1/producer-groups/{place.group}").document["pending"]

    eventually(nothing_is_left, within_seconds=60)


@pytest.mark.chaos
def test_an_outage_fails_no_transaction_and_each_message_arrives_once(place: Place, broker: RunningBroker) -> None:
    topic, over = name("orders"), threading.Event()

    def buy_on(outbox: Outbox, sessions: "sessionmaker[Session]", customer: int) -> list[str]:
        bought: list[str] = []
        while not over.is_set():
            bought.append(f"{customer}-{len(bought)}")
            buy(outbox, sessions, topic, bought[-1])
            time.sleep(0.02)  # the load, of some 300 orders a second at most
        return bought

    with (
        LossyProxy(broker.url) as proxy,
        outbox_of(place, Broker(proxy.url, API_KEY), on_unavailable="keep") as (outbox, sessions),
        ThreadPoolExecutor(THREADS) as customers,
    ):
        trade = [customers.submit(buy_on, outbox, sessions, customer) for customer in range(THREADS)]
        # Halves are stored whose answers are lost; then nothing reaches the broker; then all is well.
        for proxy.loses_answers, proxy.loses_requests in ((False, False), (True, False), (False, True), (False, False)):
            time.sleep(1.5)
        over.set()
        bought = [order_id for one in trade for order_id in one.result()]
    [(was_kept,)] = place.run("SELECT count(*) FROM mqbroker_barrier WHERE decision = 'COMMIT'")
    work_until_all_is_sent(place, broker)

    found = received_until_empty(Consumer(broker.client(), name("coupons")), topic)
    assert Counter(delivery.body.decode() for delivery in found) == Counter(bought)
    assert was_kept == len(bought) > THREADS * 4


def test_after_a_failure_messages_are_kept_without_another_try(place: Place, broker: RunningBroker) -> None:
    topic = name("orders")
    with outbox_of(place, AWAY, on_unavailable="keep") as (outbox, sessions):
        buy(outbox, sessions, topic, name("first"))
        began = time.monotonic()
        for _ in range(5):
            buy(outbox, sessions, topic, name("next"))
        took = time.monotonic() - began
    work_until_all_is_sent(place, broker)

    assert took < at_this_load(1)
    assert len(received_until_empty(Consumer(broker.client(), name("coupons")), topic)) == 6


def test_kept_messages_may_be_the_first_ones_of_their_group(place: Place, broker: RunningBroker) -> None:
    topic = name("orders")
    new = replace(place, group=name("new-shop"))
    with outbox_of(new, AWAY, on_unavailable="keep") as (outbox, sessions):
        buy(outbox, sessions, topic, name("order"))
    with outbox_of(new, broker.client(), on_unavailable="keep") as (outbox, _):
        outbox.answer_checks()

    assert len(received_until_empty(Consumer(broker.client(), name("coupons")), topic)) == 1


def test_two_processes_that_send_kept_messages_send_each_once(place: Place, broker: RunningBroker) -> None:
    topic = name("orders")
    with outbox_of(place, AWAY, on_unavailable="keep") as (outbox, sessions):
        for number in range(10):
            buy(outbox, sessions, topic, name(f"order-{number}"))
    senders = [KeptMessages(Producer(broker.client(web), place.group), place.barrier) for web in (0, 1)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(KeptMessages.send, senders))

    assert len(received_until_empty(Consumer(broker.client(), name("coupons")), topic)) == 10


def test_kept_messages_go_together(place: Place) -> None:
    place.run("DELETE FROM mqbroker_barrier")
    with outbox_of(place, AWAY, on_unavailable="keep") as (outbox, sessions):
        for number in range(10):
            buy(outbox, sessions, "orders", name(f"order-{number}"))

    with scripted(results) as server:
        assert KeptMessages(Producer(Broker(server.url, API_KEY), place.group), place.barrier).send() == 10

    assert [(asked.path, len(asked.body["operations"])) for asked in server.asked] == [("/v1/bulk", 10)] * 2


def test_kept_messages_carry_the_trace_context_of_the_code_that_sent_them(place: Place, broker: RunningBroker) -> None:
    topic = name("orders")
    with outbox_of(place, AWAY, on_unavailable="keep") as (outbox, sessions):
        for number in range(2):  # the first is kept after a failure, the second at once
            with trace.use_span(span(TRACES[number])):
                buy(outbox, sessions, topic, name("order"))
    work_until_all_is_sent(place, broker)

    found = received_until_empty(Consumer(broker.client(), name("coupons")), topic)
    assert sorted(delivery.message.traceparent or "" for delivery in found) == TRACES[:2]


def test_a_process_that_is_forked_while_kept_messages_are_sent_sends_them_too(place: Place) -> None:
    with outbox_of(place, AWAY, on_unavailable="keep") as (outbox, sessions):
        buy(outbox, sessions, "orders", name("order"))

    def send() -> None:
        kept.send_in_background()
        for thread in threading.enumerate():
            if thread.name == "kept messages":
                thread.join(120)

    with scripted(Silence(), results) as server:
        kept = KeptMessages(Producer(Broker(server.url, API_KEY), place.group), place.barrier)
        kept.send_in_background()
        server.wait_for(requests=1)
        forked = multiprocessing.get_context("fork").Process(target=send)
        forked.start()
        server.wait_for(requests=2)
        forked.join(120)

    assert forked.exitcode == 0
    place.run("DELETE FROM mqbroker_barrier")


def test_kept_messages_that_the_broker_refuses_hold_up_no_others(place: Place, broker: RunningBroker) -> None:
    topic = name("orders")
    with outbox_of(place, AWAY, on_unavailable="keep") as (outbox, sessions):
        buy(outbox, sessions, topic, name("refused"), queue_id=9)
        buy(outbox, sessions, topic, name("taken"))

    assert KeptMessages(Producer(broker.client(), place.group), place.barrier).send() == 1
    assert len(received_until_empty(Consumer(broker.client(), name("coupons")), topic)) == 1
    place.run("DELETE FROM mqbroker_barrier")


def test_without_keep_an_outage_fails_the_transaction(place: Place) -> None:
    order_id = name("order")
    with outbox_of(place, AWAY) as (outbox, sessions), pytest.raises(Unreachable):
        buy(outbox, sessions, name("orders"), order_id)

    assert order_id not in place.orders()


def test_a_kept_message_of_a_transaction_that_is_rolled_back_goes_with_it(place: Place) -> None:
    with outbox_of(place, AWAY, on_unavailable="keep") as (outbox, sessions), sessions() as session:
        session.execute(sa.text("INSERT INTO orders VALUES (:id, 'of nobody')"), {"id": name("order")})
        outbox.send(session, "orders", "never")
        # The constraint is deferred: the COMMIT itself is refused.
        with pytest.raises(sa.exc.IntegrityError):
            session.commit()

    assert place.run("SELECT count(*) FROM mqbroker_barrier WHERE messages IS NOT NULL") == [(0,)]
