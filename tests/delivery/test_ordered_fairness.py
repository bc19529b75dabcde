"""A fair group that is ordered: keys take turns within a queue, and one that fails holds up no other."""

from collections import Counter
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mqbroker_client import Admin, Consumer, Message, Producer
from mqbroker_client.core import errors

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire

NOISY, MANY = "noisy", 300


@pytest.fixture
def group(broker: RunningBroker, orders: str) -> str:
    """A fair and ordered group, and a topic of one queue."""
    name, admin = characters.name("fair"), Admin(broker.client())
    admin.create_topic(orders, queues=1)
    policy = {"kind": "table", "delay_seconds": [0]}
    admin.create_consumer_group(name, ordered=True, fair_by="sharding_key", retry_policy=policy)
    return name


def send(producer: Producer, topic: str, counts: dict[str, int], first: int = 0) -> None:
    """Sends messages of keys, key by key; each body is its key and its number."""
    for key, count in counts.items():
        numbers = range(first, first + count)
        producer.send_batch(topic, [Message(topic, f"{key} {number}".encode(), sharding_key=key) for number in numbers])


def texts(consumer: Consumer, topic: str, count: int) -> list[str]:
    """What the group is handed next; it is acked."""
    found = consumer.receive(topic, max_messages=count)
    consumer.ack(found)
    return [delivery.body.decode() for delivery in found]


def test_each_key_that_waits_has_its_turn_and_its_order(
    broker: RunningBroker, wire: Wire, producer: Producer, orders: str, group: str
) -> None:
    consumer = Consumer(broker.client(), group)
    send(producer, orders, {NOISY: MANY})
    assert texts(consumer, orders, 2) == ["noisy 0", "noisy 1"]
    send(producer, orders, {"ann": 2, "bob": 2})

    found = [body for _ in range(4) for body in texts(consumer, orders, 3)]

    assert Counter(body.split()[0] for body in found)["ann"] == 2
    assert [body for body in found if body.startswith("ann")] == ["ann 0", "ann 1"]
    assert [body for body in found if body.startswith("bob")] == ["bob 0", "bob 1"]
    noisy = [int(body.split()[1]) for body in found if body.startswith(NOISY)]
    assert noisy == list(range(2, 2 + len(noisy)))
    offsets = wire.get(f"/v1/consumer-groups/{group}/offsets?topic={orders}").document
    assert offsets["lag"] == MANY + 4 - 2 - len(found)


def test_a_key_that_fails_holds_up_itself_and_no_other(
    broker: RunningBroker, producer: Producer, orders: str, group: str
) -> None:
    consumer = Consumer(broker.client(), group)
    send(producer, orders, {NOISY: 3, "ann": 2})
    [failed] = consumer.receive(orders, max_messages=1)
    consumer.nack([failed], delay_seconds=2)

    others = texts(consumer, orders, 4)
    rest = eventually(partial(texts, consumer, orders, 4))

    key = failed.body.decode().split()[0]
    assert {body.split()[0] for body in others} == {NOISY, "ann"} - {key}
    assert rest[0] == failed.body.decode()


def test_messages_without_a_key_take_turns_as_one(
    broker: RunningBroker, producer: Producer, orders: str, group: str
) -> None:
    consumer = Consumer(broker.client(), group)
    producer.send_batch(orders, [Message(orders, f"none {number}".encode()) for number in range(MANY)])
    assert texts(consumer, orders, 1) == ["none 0"]
    send(producer, orders, {"ann": 1})

    assert "ann 0" in texts(consumer, orders, 2) + texts(consumer, orders, 2)


def test_no_order_but_that_of_sharding_keys_goes_with_it(broker: RunningBroker, orders: str, group: str) -> None:
    with pytest.raises(errors.MessageIllegal, match="keeps the order of each sharding key"):
        Admin(broker.client()).create_consumer_group(group, fair_by="property:tenant")
    with pytest.raises(errors.MessageIllegal, match="keeps the order of each sharding key"):
        Admin(broker.client()).create_consumer_group(characters.name("x"), ordered=True, fair_by="property:tenant")


def test_without_turns_what_was_parked_comes_in_the_order_of_the_queue(
    broker: RunningBroker, producer: Producer, orders: str, group: str
) -> None:
    consumer = Consumer(broker.client(), group)
    send(producer, orders, {NOISY: 10, "ann": 2})
    first = texts(consumer, orders, 4)

    Admin(broker.client()).create_consumer_group(group, fair_by=None)

    rest = texts(consumer, orders, 32)
    assert sorted(first + rest) == sorted([*(f"noisy {number}" for number in range(10)), "ann 0", "ann 1"])


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    counts=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 12), min_size=1),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=20),
)
def test_of_keys_that_still_wait_none_is_more_than_a_turn_ahead(
    broker: RunningBroker, producer: Producer, counts: dict[str, int], sizes: list[int]
) -> None:
    topic, name, admin = characters.name("orders"), characters.name("fair"), Admin(broker.client())
    admin.create_topic(topic, queues=1)
    admin.create_consumer_group(name, ordered=True, fair_by="sharding_key")
    send(producer, topic, counts)
    consumer, handed = Consumer(broker.client(), name), Counter[str]()
    for size in sizes:
        for body in texts(consumer, topic, size):
            key, _, number = body.partition(" ")
            assert int(number) == handed[key]
            handed[key] += 1
        waiting = [handed[key] for key, count in counts.items() if handed[key] < count]
        assert not waiting or max(waiting) - min(waiting) <= 1
