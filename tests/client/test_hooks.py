"""Hooks stand around every call of the client, and around what handles a message or answers a check."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mqbroker_client import (
    Broker,
    CheckListener,
    CheckPoller,
    Consumer,
    Delivery,
    HalfMessage,
    HookContext,
    LocalTransactionState,
    LoggingHook,
    Message,
    Producer,
    PushListener,
)
from mqbroker_client.aio import AsyncBroker, AsyncCheckPoller, AsyncConsumer, AsyncProducer
from mqbroker_client.contrib.testing import MemoryBroker

from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.client.answers import CHECK, ENTRY
from tests.client.pages import environment
from tests.client.test_checks import NEW_SECRET, signed

KINDS = ["send", "begin", "end", "begin", "check", "end", "receive", "nack", "extend", "ack", "handle", "ack"]


class Seen:
    """The contexts that a hook got, in the order of its beginnings."""

    def __init__(self) -> None:
        self.contexts: list[HookContext] = []
        self.failed: list[BaseException] = []

    @contextmanager
    def hook(self, context: HookContext) -> Iterator[None]:
        assert context.result is None
        self.contexts.append(context)
        try:
            yield
        except BaseException as error:
            self.failed.append(error)
            raise

    @asynccontextmanager
    async def for_tasks(self, context: HookContext) -> AsyncIterator[None]:
        with self.hook(context):
            await asyncio.sleep(0)
            yield

    def kinds(self) -> list[str]:
        """Each call once: a long poll is repeated, and a run receives before it handles."""
        kinds: list[str] = [context.kind for context in self.contexts]
        received = kinds.index("receive") if "receive" in kinds else len(kinds)
        return [kind for number, kind in enumerate(kinds) if kind != "receive" or number == received]


def forbids(context: HookContext) -> None:
    """A CheckForbiddenHook: it looks, and has nothing to leave."""
    if context.kind == "send" and any(message.body == b"secret" for message in context.messages):
        raise PermissionError("this program sends no secrets")


def commit(half: HalfMessage) -> LocalTransactionState:
    return LocalTransactionState.COMMIT


def test_a_thread_has_its_hooks_around_each_kind_of_call_and_function(broker: RunningBroker, orders: str) -> None:
    seen = Seen()
    line = Broker(broker.url, API_KEY, hooks=[seen.hook])
    producer, consumer, stop = Producer(line, orders), Consumer(line, orders), threading.Event()
    producer.send(orders, b"1")
    producer.begin(orders, b"2").rollback()
    producer.begin(orders, b"3")
    eventually(CheckPoller(producer, commit, wait_seconds=10).answer_due)
    first, second = (consumer.receive(orders, max_messages=1, wait_seconds=5)[0] for _ in range(2))
    consumer.nack([first], delay_seconds=0)
    consumer.extend([second], invisible_seconds=30)
    consumer.ack([second])

    consumer.run(orders, lambda delivery: stop.set(), stop=stop, concurrency=1)

    assert seen.kinds() == KINDS
    check_contexts(seen, orders)


async def test_a_task_has_its_hooks_around_each_kind_of_call_and_function(broker: RunningBroker, orders: str) -> None:
    seen, stop = Seen(), asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        stop.set()

    async with AsyncBroker(broker.url, API_KEY, hooks=[seen.for_tasks]) as line:
        producer, consumer = AsyncProducer(line, orders), AsyncConsumer(line, orders)
        await producer.send(orders, b"1")
        await (await producer.begin(orders, b"2")).rollback()
        await producer.begin(orders, b"3")
        poller = AsyncCheckPoller(producer, commit, wait_seconds=10)
        while not await poller.answer_due():
            pass
        first, second = [(await consumer.receive(orders, max_messages=1, wait_seconds=5))[0] for _ in range(2)]
        await consumer.nack([first], delay_seconds=0)
        await consumer.extend([second], invisible_seconds=30)
        await consumer.ack([second])
        await consumer.run(orders, handle, stop=stop, concurrency=1)

    assert seen.kinds() == KINDS
    check_contexts(seen, orders)


def check_contexts(seen: Seen, orders: str) -> None:
    """What each kind names."""
    by_kind = {context.kind: context for context in seen.contexts}
    checked, handled = by_kind["check"], by_kind["handle"]
    assert checked.result is LocalTransactionState.COMMIT
    assert [message.body for message in checked.messages] == [b"3"]
    assert handled.delivery is not None
    assert handled.topic == handled.group == orders
    assert by_kind["end"].state is LocalTransactionState.COMMIT
    assert by_kind["end"].transaction_id == checked.transaction_id
    assert len(by_kind["nack"].receipt_handles) == 1
    # A handler returns what it likes, and the last receive of a run is cut off at its stop.
    assert [each.kind for each in seen.contexts if each.result is None and each.kind != "receive"] == ["handle"]


def test_what_a_hook_forbids_is_raised_to_its_caller_and_not_sent(broker: RunningBroker, orders: str) -> None:
    seen = Seen()
    line = Broker(broker.url, API_KEY, hooks=[seen.hook, forbids])
    producer = Producer(line, orders)

    with pytest.raises(PermissionError, match="sends no secrets"):
        producer.send(orders, b"secret")
    producer.send(orders, b"news")

    assert [type(error) for error in seen.failed] == [PermissionError]
    assert [each.body for each in received_until_empty(Consumer(broker.client(), orders), orders)] == [b"news"]


def test_a_one_way_send_that_is_forbidden_is_counted_and_takes_no_other_with_it(
    broker: RunningBroker, orders: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(broker.url, API_KEY, hooks=[forbids]) as line:
        for body in (b"1", b"secret", b"2", b"secret", b"3"):
            Producer(line, orders).send(orders, body, wait=False)
    assert line.lost == 2
    assert "sends no secrets" in caplog.text

    async def as_tasks() -> int:
        async with AsyncBroker(broker.url, API_KEY, hooks=[forbids]) as line:
            for body in (b"4", b"secret", b"5"):
                await AsyncProducer(line, orders).send(orders, body, wait=False)
        return line.lost

    assert asyncio.run(as_tasks()) == 1
    received = {each.body for each in received_until_empty(Consumer(broker.client(), orders), orders)}
    assert received == {b"1", b"2", b"3", b"4", b"5"}


def test_what_a_hook_raises_behind_a_call_is_logged_and_the_result_stays(
    broker: RunningBroker, orders: str, caplog: pytest.LogCaptureFixture
) -> None:
    @contextmanager
    def breaks(context: HookContext) -> Iterator[None]:
        yield
        raise OSError("the disk of measurements is full")

    sent = Producer(Broker(broker.url, API_KEY, hooks=[breaks]), orders).send(orders, b"1")

    assert sent.queue_offset == 0
    assert "the disk of measurements is full" in caplog.text


def test_listeners_have_hooks_around_each_check_and_each_handling() -> None:
    seen = Seen()
    check = json.dumps({"type": "transaction.check", "producer_group": "shop", "transactions": [CHECK]}).encode()
    push = json.dumps({"messages": [ENTRY]}).encode()
    CheckListener(commit, [NEW_SECRET], hooks=[seen.hook]).reply(signed(check), check)
    PushListener(lambda delivery: None, [NEW_SECRET], hooks=[seen.hook]).reply(signed(push), push)

    assert [(each.kind, each.group, each.topic) for each in seen.contexts] == [
        ("check", "shop", "orders"),
        ("handle", None, "orders"),
    ]


def test_the_double_for_tests_has_hooks_too() -> None:
    seen = Seen()
    broker = MemoryBroker(hooks=[seen.hook, forbids])
    producer = Producer(broker, "shop")
    producer.begin("orders", b"1")
    broker.advance(timedelta(minutes=1).total_seconds())
    CheckPoller(producer, commit, wait_seconds=0).answer_due()
    with pytest.raises(PermissionError):
        producer.send("orders", b"secret")

    assert seen.kinds() == ["begin", "check", "end", "send"]
    assert [each.body for each in Consumer(broker, "coupons").receive("orders")] == [b"1"]


def test_the_log_names_each_call_with_its_time_and_without_its_body(
    broker: RunningBroker, orders: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mqbroker_client")
    line = Broker(broker.url, API_KEY, hooks=[LoggingHook()])
    message = Message(orders, b"hush")
    Producer(line, orders).send_message(message)
    with pytest.raises(Exception, match="topic_illegal"):
        Producer(line, orders).send("a name with spaces", b"hush")

    kept = [record for record in caplog.records if record.name == "mqbroker_client"]
    assert [record.levelname for record in kept] == ["INFO", "WARNING"]
    assert f"send {orders} {message.message_id}: " in kept[0].getMessage()
    assert " ms" in kept[0].getMessage()
    assert "topic_illegal" in kept[1].getMessage()
    assert "hush" not in caplog.text


TRACED = """
import json, sys, threading
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mqbroker_client import Broker, CheckPoller, Consumer, LocalTransactionState, Producer

exporter = InMemorySpanExporter()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
url, key, topic = sys.argv[1:]
producer, consumer = Producer(Broker(url, key), topic), Consumer(Broker(url, key), topic)
with trace.get_tracer("shop").start_as_current_span("order"):
    producer.begin(topic, b"1")
poller = CheckPoller(producer, lambda half: LocalTransactionState.COMMIT, wait_seconds=10)
while not poller.answer_due():
    pass
stop = threading.Event()
consumer.run(topic, lambda delivery: stop.set(), stop=stop, concurrency=1)
for span in exporter.get_finished_spans():
    parent = span.parent and f"{span.parent.span_id:016x}"
    print(json.dumps([span.name, f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}", parent,
                      span.kind.name, dict(span.attributes)]))
"""


def test_the_spans_of_a_message_lead_from_its_half_over_its_check_to_its_handler(
    broker: RunningBroker, orders: str
) -> None:
    spans = spans_of(TRACED, broker.url, API_KEY, orders)

    order, half, check, handler = (spans(name) for name in ("order", "begin", "check", "process"))
    assert half[3] == order[2]
    assert check[3] == handler[3] == half[2]
    assert {order[1], half[1], check[1], handler[1]} == {order[1]}
    assert [half[4], check[4], handler[4], spans("commit")[4]] == ["PRODUCER", "CONSUMER", "CONSUMER", "CLIENT"]
    # The poller ends the transaction behind its check, in a trace of its own.
    assert spans("commit")[5]["mqbroker.transaction_id"] == check[5]["mqbroker.transaction_id"]
    assert handler[5]["messaging.system"] == "mqbroker"
    assert handler[5]["messaging.destination.name"] == orders


def spans_of(program: str, *words: str) -> Callable[[str], list[Any]]:
    """The span of each verb that the program has made."""
    run = subprocess.run(
        [sys.executable, "-c", program, *words], env=environment(), cwd=Path.cwd(), capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    spans = [json.loads(line) for line in run.stdout.splitlines()]
    return {span[0].split()[0]: span for span in spans}.__getitem__
