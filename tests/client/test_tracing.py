"""A message carries the trace context of the code that sent it, alone or together with others, to its handler."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from mqbroker_client import Consumer, Delivery, Message, Producer
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.client.servers import scripted
from tests.client.test_coalescing import Gate, all_wait, calls_behind_one, producer_of, results

TRACES = [f"00-{number:032x}-00000000000000ab-01" for number in range(1, 4)]


def span(traceparent: str) -> NonRecordingSpan:
    _, trace_id, span_id, _ = traceparent.split("-")
    return NonRecordingSpan(
        SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(1))
    )


def test_a_message_has_the_context_of_the_span_that_sent_it_or_its_own(broker: RunningBroker, orders: str) -> None:
    producer, consumer = Producer(broker.client(), orders), Consumer(broker.client(), orders)
    with trace.use_span(span(TRACES[0])):
        producer.begin(orders, b"0").commit()
        producer.send(orders, b"1", traceparent=TRACES[1])
    producer.send(orders, b"2")

    received = {delivery.body: delivery.message.traceparent for delivery in consumer.receive(orders)}
    assert received == {b"0": TRACES[0], b"1": TRACES[1], b"2": None}


def test_messages_that_go_together_keep_a_context_each() -> None:
    gate = Gate(results)
    messages = [Message("orders", b"x", traceparent=traceparent) for traceparent in TRACES]
    with scripted(gate, results) as server:
        producer = producer_of(server)
        with calls_behind_one(server, [partial(producer.send_message, each) for each in messages]):
            all_wait(producer.broker, 2)
            gate.opened.set()

    assert server.asked[0].headers["traceparent"] == TRACES[0]
    assert sorted(each["traceparent"] for each in server.asked[1].body["operations"]) == TRACES[1:]


def test_the_broker_stores_the_context_of_each_message_of_a_bulk(broker: RunningBroker, orders: str) -> None:
    producer, consumer = Producer(broker.client(), orders), Consumer(broker.client(), orders)
    gathered = threading.Barrier(12)

    def send(number: int) -> str:
        traceparent = f"00-{number + 1:032x}-00000000000000ab-01"
        gathered.wait(120)
        producer.send(orders, b"%d" % number, traceparent=traceparent)
        return traceparent

    with ThreadPoolExecutor(12) as threads:
        sent = {b"%d" % number: traceparent for number, traceparent in enumerate(threads.map(send, range(12)))}

    assert {each.body: each.message.traceparent for each in consumer.receive(orders)} == sent


@pytest.mark.parametrize("traceparent", TRACES[:1])
def test_a_handler_runs_in_the_trace_of_its_message(broker: RunningBroker, orders: str, traceparent: str) -> None:
    Producer(broker.client(), orders).send(orders, b"x", traceparent=traceparent)
    seen: list[int] = []
    stop = threading.Event()

    def handle(delivery: Delivery) -> None:
        seen.append(trace.get_current_span().get_span_context().trace_id)

    running = threading.Thread(
        target=Consumer(broker.client(), orders).run, args=(orders, handle), kwargs={"stop": stop}
    )
    running.start()
    eventually(lambda: seen)
    stop.set()
    running.join(120)

    assert seen == [1]
