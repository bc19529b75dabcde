"""A fair group: keys take turns, so one with many messages does not hold up those with few."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mqbroker_client import Admin, Consumer, Delivery, Message, Producer
from mqbroker_client.core import errors

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire

NOISY, QUIET = "noisy", ("ann", "bob", "cid")
MANY, FEW = 300, 2
Send = Callable[[str, int], list[str]]


@pytest.fixture(params=["sharding_key", "property:tenant"])
def fair_by(request: pytest.FixtureRequest) -> str:
    """What messages are parted by."""
    by: str = request.param
    return by


@pytest.fixture
def group(broker: RunningBroker, fair_by: str) -> str:
    """A fair group."""
    name = characters.name("fair")
    Admin(broker.client()).create_consumer_group(name, fair_by=fair_by)
    return name


@pytest.fixture
def consumer(broker: RunningBroker, group: str) -> Iterator[Consumer]:
    with broker.client() as client:
        yield Consumer(client, group)


@pytest.fixture
def send(producer: Producer, orders: str, fair_by: str) -> Send:
    """Sends a number of messages of a tenant, each with the tenant and its number as body; gives their ids."""
    sent: Counter[str] = Counter()

    def send(tenant: str, count: int) -> list[str]:
        numbers = range(sent[tenant], sent[tenant] + count)
        sent[tenant] += count
        stored = producer.send_batch(orders, [of(orders, tenant, number, fair_by) for number in numbers])
        return [str(one.message_id) for one in stored]

    return send


def of(topic: str, tenant: str, number: int, fair_by: str) -> Message:
    """A message of a tenant."""
    body = f"{tenant} {number}".encode()
    if fair_by == "sharding_key":
        return Message(topic, body, tags="new", sharding_key=tenant)
    return Message(topic, body, tags="new", properties={"tenant": tenant})


def texts(deliveries: list[Delivery]) -> list[str]:
    return [delivery.body.decode() for delivery in deliveries]


def tenants(bodies: list[str]) -> Counter[str]:
    return Counter(body.partition(" ")[0] for body in bodies)


@pytest.mark.parametrize("tags", [None, "new"], ids=["unfiltered", "filtered"])
def test_each_key_that_waits_has_a_message_in_a_turn_and_in_its_order(
    consumer: Consumer, send: Send, orders: str, tags: str | None
) -> None:
    send(NOISY, MANY)
    consumer.ack(consumer.receive(orders, max_messages=1, filter=tags))
    for tenant in QUIET:
        send(tenant, FEW)

    first = texts(consumer.receive(orders, max_messages=8, filter=tags))

    assert tenants(first) == {NOISY: 2, **dict.fromkeys(QUIET, FEW)}
    assert [body for body in first if body.startswith("ann")] == ["ann 0", "ann 1"]
    rest = texts(consumer.receive(orders, max_messages=4, filter=tags))
    assert tenants(rest) == {NOISY: 4}


def test_what_waits_is_lag_and_the_trace_has_it_as_waiting(
    wire: Wire, consumer: Consumer, group: str, send: Send, orders: str
) -> None:
    ids = send(NOISY, 10)
    [handed] = consumer.receive(orders, max_messages=1)

    offsets = wire.get(f"/v1/consumer-groups/{group}/offsets?topic={orders}").document
    assert offsets["lag"] == 9
    waiting = next(message_id for message_id in ids if message_id != str(handed.message.message_id))
    trace = wire.get(f"/v1/messages/{waiting}/trace").document
    assert [(one["group"], one["state"]) for one in trace["groups"]] == [(group, "WAITING")]


def test_a_group_stays_fair_until_nothing_waits_and_a_reset_ends_the_wait(
    broker: RunningBroker, wire: Wire, consumer: Consumer, group: str, send: Send, orders: str
) -> None:
    admin = Admin(broker.client())
    send(NOISY, 10)
    consumer.receive(orders, max_messages=1)

    with pytest.raises(errors.MessageIllegal, match="wait for their turns: reset the offsets"):
        admin.create_consumer_group(group, fair_by=None)
    with pytest.raises(errors.MessageIllegal, match=r"wait for their turns|keeps the order of each sharding key"):
        admin.create_consumer_group(group, ordered=True)
    admin.create_consumer_group(group, fair_by="property:country")

    reset = json.dumps({"topic": orders, "to": "earliest"}).encode()
    assert wire.call("PUT", f"/v1/consumer-groups/{group}/offsets", reset).status == 200
    admin.create_consumer_group(group, fair_by=None)
    assert len(consumer.receive(orders, max_messages=32)) == 10


@pytest.mark.parametrize("fair", ["", "tenant", "property:", 7])
def test_what_parts_no_messages_is_refused(wire: Wire, fair: object) -> None:
    group = json.dumps({"fair_by": fair}).encode()

    answer = wire.call("PUT", f"/v1/consumer-groups/{characters.name('unfair')}", group)

    assert answer.problem["code"] == "message_illegal", answer


def test_a_retry_takes_its_turn_like_any_other_message(consumer: Consumer, send: Send, orders: str) -> None:
    send(NOISY, MANY)
    failed = consumer.receive(orders, max_messages=8)
    consumer.nack(failed, delay_seconds=0)
    send("ann", 1)

    def both() -> list[str]:
        found = consumer.receive(orders, max_messages=2)
        consumer.ack(found)
        return texts(found)

    assert "ann 0" in both()
    again = eventually(lambda: [body for body in both() if body in texts(failed)])
    assert set(again) <= set(texts(failed))


def test_consumers_of_two_web_processes_are_handed_each_message_once(
    broker: RunningBroker, group: str, send: Send, orders: str
) -> None:
    counts = {NOISY: MANY, **{f"quiet-{number}": FEW for number in range(40)}}
    for tenant, count in counts.items():
        send(tenant, count)

    def drain(web: int) -> list[str]:
        found: list[str] = []
        with broker.client(web) as client:
            consumer = Consumer(client, group)
            while more := consumer.receive(orders, max_messages=7):
                consumer.ack(more)
                found += texts(more)
        return found

    with ThreadPoolExecutor(6) as pool:
        received = [body for bodies in pool.map(drain, [0, 1] * 3) for body in bodies]

    assert tenants(received) == counts
    assert len(set(received)) == len(received)


def test_turns_go_on_from_one_receive_to_the_next_when_many_receive_at_once(
    broker: RunningBroker, consumer: Consumer, group: str, send: Send, orders: str
) -> None:
    keys = [f"key-{number}" for number in range(30)]
    for key in keys:
        send(key, 8)
    handed = texts(consumer.receive(orders, max_messages=1))

    def receives(_: int) -> list[str]:
        with broker.client() as client:
            beside = Consumer(client, group)
            return [body for _ in range(2) for body in texts(beside.receive(orders, max_messages=1))]

    # As many as fill a second batch while the first is under way.
    with ThreadPoolExecutor(96) as pool:
        handed += [body for bodies in pool.map(receives, range(96)) for body in bodies]

    counts = tenants(handed)
    assert len(set(handed)) == 1 + 2 * 96
    assert max(counts.values()) - min(counts[key] for key in keys) <= 1


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    counts=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 12), min_size=1),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30),
)
def test_of_keys_that_still_wait_none_is_more_than_a_turn_ahead(
    broker: RunningBroker, counts: dict[str, int], sizes: list[int]
) -> None:
    orders, group = characters.name("orders"), characters.name("fair")
    with broker.client() as client:
        Admin(client).create_consumer_group(group, fair_by="property:tenant")
        sent = [of(orders, key, number, "property:tenant") for key, count in counts.items() for number in range(count)]
        Producer(client, "order-service").send_batch(orders, sent)
        consumer, handed = Consumer(client, group), Counter[str]()
        for size in sizes:
            bodies = texts(consumer.receive(orders, max_messages=size))
            for body in bodies:
                key, _, number = body.partition(" ")
                assert int(number) == handed[key]
                handed[key] += 1
            waiting = [handed[key] for key, count in counts.items() if handed[key] < count]
            assert not waiting or max(waiting) - min(waiting) <= 1
            assert not waiting or len(bodies) == size


def test_all_is_received_and_that_of_a_sharding_key_in_order(
    consumer: Consumer, send: Send, orders: str, fair_by: str
) -> None:
    for _ in range(FEW):
        send(NOISY, MANY)
        send("ann", FEW)

    received: list[str] = []
    while more := consumer.receive(orders, max_messages=32):
        consumer.ack(more)
        received += texts(more)

    assert tenants(received) == {NOISY: FEW * MANY, "ann": FEW * FEW}
    for tenant in (NOISY, "ann") if fair_by == "sharding_key" else ():
        numbers = [int(body.split()[1]) for body in received if body.startswith(tenant)]
        assert numbers == sorted(numbers)
