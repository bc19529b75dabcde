"""A consumer that runs acks what its function returned from, nacks what it raised, extends meanwhile, and stops."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from mqbroker_client import Admin, Broker, Consumer, Delivery, Producer, Redeliver
from mqbroker_client.aio import AsyncBroker, AsyncConsumer
from mqbroker_client.core import errors

from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.client.answers import ENTRY, problem
from tests.client.servers import Answer, Asked, Silence, busy, scripted

KINDS = pytest.mark.parametrize("kind", ["threads", "tasks"])


class Run:
    """A consumer that runs in the background, by threads or in an event loop of its own."""

    def __init__(
        self, kind: str, broker_url: str, group: str, topic: str, handler: Callable[[Delivery], Any], **limits: Any
    ):
        self.error: BaseException | None = None
        self.stop = threading.Event()
        work = {"threads": self._by_threads, "tasks": self._by_tasks}[kind]
        self.work = partial(work, broker_url, group, topic, handler, limits)
        self.thread = threading.Thread(target=self._run, args=(self.work,))

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (errors.BrokerError, ValueError) as error:
            self.error = error

    def _by_threads(self, url: str, group: str, topic: str, handler: Callable[[Delivery], Any], limits: Any) -> None:
        with Broker(url, API_KEY) as broker:
            Consumer(broker, group).run(topic, handler, stop=self.stop, **limits)

    def _by_tasks(self, url: str, group: str, topic: str, handler: Callable[[Delivery], Any], limits: Any) -> None:
        async def run() -> None:
            stop = asyncio.Event()

            async def forward() -> None:
                await asyncio.to_thread(self.stop.wait)
                stop.set()

            forwarding = asyncio.create_task(forward())
            try:
                async with AsyncBroker(url, API_KEY) as broker:
                    await AsyncConsumer(broker, group).run(topic, handler, stop=stop, **limits)
            finally:
                self.stop.set()
                await forwarding

        asyncio.run(run())

    def end(self) -> float:
        """Stops it; the seconds that it took."""
        began = time.monotonic()
        self.stop.set()
        self.thread.join(120)
        assert not self.thread.is_alive()
        return time.monotonic() - began


@contextmanager
def running(
    kind: str, broker: RunningBroker, topic: str, handler: Callable[[Delivery], Any], **limits: Any
) -> Iterator[Run]:
    run = Run(kind, broker.url, topic, topic, handler, **{"wait_seconds": 5} | limits)
    run.thread.start()
    try:
        yield run
    finally:
        run.end()


@KINDS
def test_each_message_is_handled_and_acked(kind: str, broker: RunningBroker, orders: str) -> None:
    producer = Producer(broker.client(), orders)
    sent = [producer.send(orders, b"%d" % number).message_id for number in range(40)]
    handled: list[Any] = []
    with running(kind, broker, orders, lambda delivery: handled.append(delivery.message.message_id)):
        eventually(lambda: len(handled) == 40)

    assert sorted(handled) == sorted(sent)
    assert Consumer(broker.client(), orders).receive(orders) == []


@KINDS
def test_handlers_run_at_the_same_time_up_to_the_concurrency(kind: str, broker: RunningBroker, orders: str) -> None:
    producer = Producer(broker.client(), orders)
    together = threading.Barrier(4)
    for _ in range(8):
        producer.send(orders, b"x")
    handled = []

    def handle(delivery: Delivery) -> None:
        together.wait(120)
        handled.append(delivery)

    with running(kind, broker, orders, handle, concurrency=4):
        eventually(lambda: len(handled) == 8)


@KINDS
def test_what_a_handler_raises_nacks_with_the_delay_that_it_asks_for(
    kind: str, broker: RunningBroker, orders: str
) -> None:
    Producer(broker.client(), orders).send(orders, b"x")
    attempts: list[int] = []

    def handle(delivery: Delivery) -> None:
        attempts.append(delivery.delivery_attempt)
        if delivery.delivery_attempt == 1:
            raise Redeliver(0)
        if delivery.delivery_attempt == 2:
            raise ValueError("no money")

    with running(kind, broker, orders, handle):
        eventually(lambda: attempts == [1, 2, 3])


@KINDS
def test_a_message_is_extended_for_as_long_as_its_handler_runs(kind: str, broker: RunningBroker, orders: str) -> None:
    Producer(broker.client(), orders).send(orders, b"x")
    began, over = threading.Event(), threading.Event()
    seen: list[int] = []

    def handle(delivery: Delivery) -> None:
        seen.append(delivery.delivery_attempt)
        began.set()
        over.wait(120)

    consumer = Consumer(broker.client(), orders)
    with running(kind, broker, orders, handle, invisible_seconds=1):
        assert began.wait(120)
        # Three times its invisible time: long polls, in which it would be received again.
        assert consumer.receive(orders, wait_seconds=3) == []
        over.set()

    assert seen == [1]
    assert consumer.receive(orders) == []


@KINDS
def test_messages_of_an_ordered_group_are_handled_in_order_and_wait_for_one_that_fails(
    kind: str, broker: RunningBroker, orders: str
) -> None:
    client = broker.client()
    Admin(client).create_consumer_group(orders, ordered=True)
    producer = Producer(client, orders)
    for number in range(6):
        producer.send(orders, b"%d" % number, sharding_key="customer-1")
    handled: list[bytes] = []

    def handle(delivery: Delivery) -> None:
        if delivery.body == b"2" and delivery.delivery_attempt == 1:
            raise Redeliver(0.5)
        handled.append(delivery.body)

    with running(kind, broker, orders, handle):
        eventually(lambda: len(handled) == 6)

    assert handled == [b"%d" % number for number in range(6)]


@KINDS
def test_a_stop_ends_the_long_poll_at_once(kind: str, broker: RunningBroker, orders: str) -> None:
    Producer(broker.client(), orders).send(orders, b"x")
    handled = threading.Event()
    with running(kind, broker, orders, lambda delivery: handled.set(), wait_seconds=20) as run:
        assert handled.wait(120)
        assert run.end() < at_this_load(2)


@KINDS
def test_a_stop_waits_for_the_handler_and_gives_back_what_none_has_begun(
    kind: str, broker: RunningBroker, orders: str
) -> None:
    producer, consumer = Producer(broker.client(), orders), Consumer(broker.client(), orders)
    Admin(broker.client()).create_topic(orders, queues=1)
    for number in range(3):
        producer.send(orders, b"%d" % number)
    began, over = threading.Event(), threading.Event()

    def handle(delivery: Delivery) -> None:
        began.set()
        over.wait(120)

    with running(kind, broker, orders, handle, concurrency=1) as run:
        assert began.wait(120)
        run.stop.set()
        left = [delivery for _ in range(2) for delivery in consumer.receive(orders, max_messages=1, wait_seconds=10)]
        assert run.thread.is_alive()
        over.set()
        run.end()

    assert sorted((delivery.body, delivery.delivery_attempt) for delivery in left) == [(b"1", 1), (b"2", 1)]


@KINDS
def test_a_handler_that_never_ends_holds_a_stop_no_longer_than_its_time(
    kind: str, broker: RunningBroker, orders: str
) -> None:
    Producer(broker.client(), orders).send(orders, b"x")
    began, over = threading.Event(), threading.Event()

    async def task(delivery: Delivery) -> None:
        began.set()
        await asyncio.sleep(60)

    def thread(delivery: Delivery) -> None:
        began.set()
        over.wait(120)

    with running(kind, broker, orders, task if kind == "tasks" else thread, stop_seconds=0.5) as run:
        assert began.wait(120)
        assert run.end() < at_this_load(3)
    over.set()


@KINDS
def test_a_refusal_ends_the_run(kind: str) -> None:
    with scripted(problem(403, "no_permission", "This key may not consume.")) as server:
        run = Run(kind, server.url, "coupons", "orders", print, ordered=False)
        run.thread.start()
        run.thread.join(120)

    assert isinstance(run.error, errors.NoPermission)


@KINDS
def test_a_key_that_may_not_read_the_group_has_to_say_whether_it_is_ordered(kind: str) -> None:
    with scripted(problem(403, "no_permission", "This key may not manage.")) as server:
        run = Run(kind, server.url, "coupons", "orders", print)
        run.thread.start()
        run.thread.join(120)

    assert str(run.error) == "the API key may not read the consumer group: give ordered=True or ordered=False"


@KINDS
def test_a_broker_that_is_away_is_tried_again(kind: str) -> None:
    acked = Answer(200, {"results": [{"receipt_handle": "receipt-1", "status": 200}]})
    received = iter([busy(), Answer(200, {"messages": [ENTRY]})])
    handled = threading.Event()

    def reply(asked: Asked) -> Answer | Silence:
        return acked if asked.path.endswith("/ack") else next(received, Silence())

    with scripted(reply) as server:
        run = Run(kind, server.url, "coupons", "orders", lambda delivery: handled.set(), ordered=False)
        run.thread.start()
        assert handled.wait(120)
        run.end()


@pytest.mark.parametrize("kind", ["Consumer", "AsyncConsumer"])
def test_sigterm_ends_a_program_when_its_handlers_are_done(kind: str, broker: RunningBroker, orders: str) -> None:
    Producer(broker.client(), orders).send(orders, b"x")
    words = [sys.executable, "-m", "tests.client.runs", kind, broker.url, API_KEY, orders]
    with subprocess.Popen(words, env=broker.environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        program.send_signal(signal.SIGTERM)
        said, _ = program.communicate(timeout=120)

    assert (program.returncode, said) == (0, "done\n")
    assert Consumer(broker.client(), orders).receive(orders) == []


def test_sigterm_ends_all_consumers_of_a_program_and_reaches_its_own_handler(
    broker: RunningBroker, orders: str
) -> None:
    Producer(broker.client(), orders).send(orders, b"x")
    words = [sys.executable, "-m", "tests.client.runs", "both", broker.url, API_KEY, orders]
    with subprocess.Popen(words, env=broker.environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert [program.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
        program.send_signal(signal.SIGTERM)
        said, _ = program.communicate(timeout=120)

    assert (program.returncode, sorted(said.split())) == (0, ["done", "done", "heard"])
