"""Callers that read slowly, or nothing: what they hold is bounded, and they keep no other key from reading.

`MQ_BURDENS=1 ./mq test tests/delivery/test_slow_readers.py -s` measures it on a quiet machine.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
import pytest
from mqbroker_client import Broker, Consumer, Producer

from tests.broker import burdens, characters, stalled
from tests.broker.burdens import MEBIBYTE
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, QUICK, RunningBroker
from tests.broker.wire import Answer

BODY = b"x" * (3 * MEBIBYTE)
SENT = 6
CALLERS = 200 if burdens.IS_STRICT else 40


@pytest.fixture(scope="module")
def web(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A web process of its own, as it is set without a setting, on the broker's database."""
    folder = tmp_path_factory.mktemp("slow")
    with RunningBroker(folder, broker.database_url, broker.environment["REDIS_URL"], QUICK, tasks=False) as web:
        yield web


@pytest.fixture(scope="module")
def heavy(web: RunningBroker) -> str:
    """A topic with eighteen megabytes in queue 1, which one look-up by key finds, too."""
    orders = characters.name("orders")
    producer = Producer(web.client(), characters.name("order-service"))
    for number in range(SENT):
        producer.send(orders, b"%d" % number + BODY, queue_id=1, keys=["heavy"])
    return orders


def read_nothing(web: RunningBroker, request: bytes, meanwhile: Callable[[], object] = lambda: None) -> None:
    with stalled.stalled(web.url, request, CALLERS):
        burdens.wait_for_rest(web)
        meanwhile()


def post(path: str, document: bytes, key: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: broker\r\nAuthorization: Bearer {key}\r\nContent-Length: {len(document)}"
    return head.encode() + b"\r\n\r\n" + document


def by_time(web: RunningBroker, heavy: str) -> bytes:
    return stalled.get(f"/v1/messages?topic={heavy}&limit=100", API_KEY)


def by_key(web: RunningBroker, heavy: str) -> bytes:
    return stalled.get(f"/v1/messages?topic={heavy}&key=heavy", API_KEY)


def by_id(web: RunningBroker, heavy: str) -> bytes:
    pulled = web.wire().get(f"/v1/topics/{heavy}/queues/1/messages?offset=0&max=1").document
    return stalled.get(f"/v1/messages/{pulled['messages'][0]['message']['message_id']}", API_KEY)


def pull(web: RunningBroker, heavy: str) -> bytes:
    return stalled.get(f"/v1/topics/{heavy}/queues/1/messages?offset=0&max={SENT}", API_KEY)


def dead_letters(web: RunningBroker, heavy: str) -> bytes:
    group = characters.name("coupons")
    settings = {"max_reconsume_times": 0}
    assert web.wire().call("PUT", f"/v1/consumer-groups/{group}", str(settings).replace("'", '"').encode()).status < 300
    consumer = Consumer(web.client(), group)
    given_up = 0
    while given_up < SENT:
        for delivery in consumer.receive(heavy):
            consumer.nack([delivery], delay_seconds=0)
            given_up += 1
    return stalled.get(f"/v1/dead-letters/{group}", API_KEY)


def checks(web: RunningBroker, heavy: str) -> bytes:
    producer = Producer(web.client(), characters.name("order-service"))
    for _ in range(SENT):
        producer.begin(heavy, BODY)
    due = (
        "UPDATE half_message AS h SET next_check_at = now() FROM producer_group AS g"
        " WHERE g.id = h.producer_group_id AND g.name = %s"
    )
    with psycopg.connect(web.database_of(heavy), autocommit=True) as connection:
        assert connection.execute(due, [producer.group]).rowcount == SENT
    return post(f"/v1/producer-groups/{producer.group}/checks/receive", b'{"max_transactions": 100}', API_KEY)


@pytest.mark.parametrize("request_of", [by_time, by_key, by_id, pull, dead_letters, checks])
def test_callers_that_read_nothing_of_large_answers_hold_a_bounded_memory(
    web: RunningBroker, heavy: str, request_of: Callable[[RunningBroker, str], bytes]
) -> None:
    request = request_of(web, heavy)

    burden = burdens.burden_of(web, partial(read_nothing, web, request))

    burdens.hold(burden, burdens.WITH_A_KEY_BYTES)


def test_slow_readers_of_one_key_keep_no_other_key_from_reading(web: RunningBroker, heavy: str) -> None:
    other = Broker(web.url, characters.key_of(web, "produce:*", "read:*", "consume:*"), timeout_seconds=30)
    small = characters.name("small")
    producer, consumer = Producer(other, characters.name("p")), Consumer(other, characters.name("c"))
    seconds: list[float] = []
    large: list[bytes] = []

    def read() -> None:
        for _ in range(10):
            producer.send(small, b"1")
            began = time.monotonic()
            [delivery] = consumer.receive(small, wait_seconds=5)
            consumer.ack([delivery])
            seconds.append(time.monotonic() - began)
        large.extend(one.body for one in consumer.receive(heavy, max_messages=1))

    read_nothing(web, pull(web, heavy), read)

    assert len(seconds) == 10
    assert max(seconds) < at_this_load(2)
    assert [len(body) for body in large] == [len(BODY) + 1]


def test_small_messages_are_read_while_two_keys_hold_all_that_answers_may_have(web: RunningBroker, heavy: str) -> None:
    other = Broker(web.url, characters.key_of(web, "produce:*", "read:*", "consume:*"), timeout_seconds=30)
    small = characters.name("small")
    producer, consumer = Producer(other, characters.name("p")), Consumer(other, characters.name("c"))
    path = f"/v1/topics/{heavy}/queues/1/messages?offset=0&max={SENT}"
    received: list[bytes] = []
    pulled: list[int] = []

    def read() -> None:
        for number in range(10):
            producer.send(small, b"%d" % number, queue_id=0)
            [delivery] = consumer.receive(small, wait_seconds=5)
            received.append(delivery.body)
        pulled.append(len(consumer.pull(small, 0, 0, max=10).messages))

    with stalled.stalled(web.url, stalled.get(path, characters.key_of(web, "read:*")), CALLERS):
        read_nothing(web, stalled.get(path, characters.key_of(web, "read:*")), read)

    assert received == [b"%d" % number for number in range(10)]
    assert pulled == [10]


def test_a_message_that_is_too_large_for_the_reserve_is_refused_in_time_and_received_later(
    web: RunningBroker, heavy: str
) -> None:
    path = f"/v1/topics/{heavy}/queues/1/messages?offset=0&max={SENT}"
    receive = b'{"topic": "%s", "max_messages": 1}' % heavy.encode()
    wire = web.wire()
    groups: list[str] = []

    def refusal() -> Answer | None:
        # There is room for one message more for a moment, when an answer has been given up for another one.
        groups.append(characters.name("late"))
        answer = wire.call("POST", f"/v1/consumer-groups/{groups[-1]}/receive", receive)
        return None if answer.status == 200 else answer

    def refusal_of_pull() -> Answer | None:
        answer = wire.get(f"/v1/topics/{heavy}/queues/1/messages?offset=0&max=1")
        assert answer.status != 200 or answer.document["messages"]
        return None if answer.status == 200 else answer

    held = [stalled.stalled(web.url, stalled.get(path, characters.key_of(web, "read:*")), CALLERS) for _ in range(2)]
    with held[0], held[1]:
        burdens.wait_for_rest(web)
        refused, not_pulled = eventually(refusal), eventually(refusal_of_pull)
    received = Consumer(web.client(), groups[-1]).receive(heavy, max_messages=1, wait_seconds=5)

    assert [(one.status, one.problem["code"]) for one in (refused, not_pulled)] == [(503, "system_busy")] * 2
    assert len(received) == 1
