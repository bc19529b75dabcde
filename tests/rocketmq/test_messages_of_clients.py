"""Messages over the protocol: every field arrives, by gRPC and by HTTP, whichever way it was sent."""

import gzip
import hashlib
import time
import uuid
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mqbroker_client import Admin, Broker, Compression, Consumer, Producer

from mqbroker.rocketmq import messages
from mqbroker.rocketmq.protocol.definition_pb2 import Encoding, FilterType, MessageType, Permission, Resource
from mqbroker.rocketmq.protocol.service_pb2 import QueryAssignmentRequest, QueryRouteRequest, RecallMessageRequest
from tests.broker.characters import name
from tests.broker.running import API_KEY, RunningBroker
from tests.rocketmq.stub import ENDPOINTS, Client, message, new_id

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_every_field_of_a_message_arrives(client: Client, orders: str) -> None:
    sent = message(
        orders,
        b"\xff\x00tea",
        MessageType.FIFO,
        tag="drinks",
        keys=["order-7", "tea"],
        message_group="customer-1",
        trace_context=TRACE,
        born_timestamp={"seconds": 1_700_000_000, "nanos": 123_000_000},
        properties={"price": "3", "käse": "ja"},
    )

    [entry] = client.send(sent).entries
    [received] = client.received("coupons", orders)

    system, given_system = received.system_properties, sent.system_properties
    assert (received.topic.name, received.body) == (orders, b"\xff\x00tea")
    assert dict(received.user_properties) == {"price": "3", "käse": "ja"}
    assert (system.tag, list(system.keys), system.message_group) == ("drinks", ["order-7", "tea"], "customer-1")
    assert (system.trace_context, system.message_type) == (TRACE, MessageType.FIFO)
    assert system.message_id == given_system.message_id == entry.message_id
    assert system.born_timestamp == given_system.born_timestamp
    assert abs(system.store_timestamp.seconds - time.time()) < 60
    assert (system.delivery_attempt, system.queue_offset, system.body_encoding) == (1, entry.offset, Encoding.IDENTITY)
    assert system.body_digest.checksum == hashlib.md5(b"\xff\x00tea", usedforsecurity=False).hexdigest().upper()
    assert client.ack("coupons", received).status.code == 20000


def test_what_a_client_sends_is_received_over_http(client: Client, consumer: Consumer, orders: str) -> None:
    client.send(message(orders, b'{"item": "tea"}', tag="drinks", keys=["k"], properties={"price": "3"}))
    client.send(message(orders, b"\xff", message_group="customer-1"))

    received = consumer.receive(orders, wait_seconds=5)

    by_body = {one.body: one.message for one in received}
    text, binary = by_body[b'{"item": "tea"}'], by_body[b"\xff"]
    assert (text.tags, list(text.keys), text.properties) == ("drinks", ["k"], {"price": "3"})
    assert (binary.sharding_key, binary.properties) == ("customer-1", {})


def test_a_text_is_one_over_http_whichever_way_it_came(client: Client, broker: RunningBroker, orders: str) -> None:
    client.send(message(orders, "käse".encode()))

    [entry] = (
        broker.wire()
        .post("/v1/consumer-groups/coupons/receive", {"topic": orders, "wait_seconds": 5})
        .document["messages"]
    )

    assert entry["message"]["body"] == "käse"


def test_what_is_sent_over_http_is_received_by_a_client(client: Client, producer: Producer, orders: str) -> None:
    sent = producer.send(orders, b"tea", tags="drinks", keys=["a", "b"], sharding_key="c", properties={"price": "3"})

    [received] = client.received("coupons", orders)

    system = received.system_properties
    assert (received.body, dict(received.user_properties)) == (b"tea", {"price": "3"})
    assert (system.tag, list(system.keys), system.message_group) == ("drinks", ["a", "b"], "c")
    assert system.message_id == f"01{uuid.UUID(str(sent.message_id)).hex.upper()}"


@pytest.mark.parametrize("compression", [Compression("zlib"), Compression("zstd")], ids=["zlib", "zstd"])
def test_a_body_that_the_sdk_has_compressed_arrives_unpacked(
    compression: Compression, client: Client, broker: RunningBroker, orders: str
) -> None:
    body = b"tea and biscuits " * 1000
    sdk = Broker(broker.url, API_KEY, compression=compression)
    Producer(sdk, name("group")).send(orders, body)

    [received] = client.received("coupons", orders)

    assert received.body == body
    assert received.system_properties.body_encoding == Encoding.IDENTITY


def test_a_body_that_a_client_has_compressed_is_kept_unpacked(client: Client, consumer: Consumer, orders: str) -> None:
    client.send(message(orders, gzip.compress(b"tea" * 5000), body_encoding=Encoding.GZIP))

    assert [one.body for one in consumer.receive(orders, wait_seconds=5)] == [b"tea" * 5000]


def test_the_largest_body_arrives(client: Client, orders: str) -> None:
    body = bytes(range(256)) * (4 * 2**20 // 256)
    client.send(message(orders, body))

    assert [one.body for one in client.received("coupons", orders)] == [body]


def test_several_messages_are_stored_together(client: Client, orders: str) -> None:
    answer = client.send(*[message(orders, bytes([number + 65]), tag="t") for number in range(20)])

    assert [entry.status.code for entry in answer.entries] == [20000] * 20
    offsets = [entry.offset for entry in answer.entries]
    assert offsets == list(range(offsets[0], offsets[0] + 20))
    assert {one.body for one in client.all(20, "coupons", orders)} == {bytes([number + 65]) for number in range(20)}


def test_a_send_that_is_repeated_under_its_id_is_stored_once(client: Client, orders: str) -> None:
    sent = message(orders, b"tea")

    ids = {client.send(sent).entries[0].message_id for _ in range(3)}

    assert ids == {sent.system_properties.message_id}
    assert len(client.received("coupons", orders)) == 1
    assert client.received("coupons", orders, timeout=1) == []


def test_a_message_whose_id_another_has_is_stored_under_a_new_one(client: Client, orders: str) -> None:
    taken = new_id()
    client.send(message(orders, b"tea", message_id=taken))

    [entry] = client.send(message(orders, b"coffee", message_id=taken)).entries

    assert entry.message_id != taken
    received = client.all(2, "coupons", orders)
    assert {one.body: one.system_properties.message_id for one in received} == {
        b"tea": taken,
        b"coffee": entry.message_id,
    }


def test_a_delayed_message_comes_at_its_time_and_is_recalled_before_it(client: Client, orders: str) -> None:
    soon, later = time.time() + 2, time.time() + 600
    given_times = [{"seconds": int(at), "nanos": int(at % 1 * 1000) * 1_000_000} for at in (soon, later)]
    delayed, wanted_back = [
        client.send(message(orders, b"tea", MessageType.DELAY, delivery_timestamp=at)).entries[0] for at in given_times
    ]

    [received] = client.received("coupons", orders, wait=15.0)
    arrived = time.time()

    assert arrived >= soon - 0.01
    assert received.system_properties.message_id == delayed.message_id
    assert received.system_properties.message_type == MessageType.DELAY
    assert received.system_properties.delivery_timestamp.ToMilliseconds() == int(soon * 1000)
    assert dict(received.user_properties) == {}
    recalled = [
        client.call("RecallMessage", RecallMessageRequest(topic=Resource(name=orders), recall_handle=one.recall_handle))
        for one in (wanted_back, wanted_back, delayed)
    ]
    assert [one.status.code for one in recalled] == [20000, 20000, 40400]
    assert recalled[0].message_id == wanted_back.message_id


def test_filters_choose_by_tag_and_by_property(client: Client, orders: str) -> None:
    for price, tag in enumerate("ABCA"):
        client.send(message(orders, bytes([price + 48]), tag=tag, properties={"price": str(price)}))

    by_tag = client.all(3, "tags", orders, filter="A || C")
    by_price = client.all(2, "prices", orders, filter="price > 1", filter_type=FilterType.SQL)

    assert {one.body for one in by_tag} == {b"0", b"2", b"3"}
    assert {one.body for one in by_price} == {b"2", b"3"}
    assert client.received("tags", orders, filter="A || C", timeout=1) == []


def test_a_route_leads_to_where_the_client_came_from(client: Client, orders: str) -> None:
    route = client.call("QueryRoute", QueryRouteRequest(topic=Resource(name=orders), endpoints=ENDPOINTS))

    assert route.status.code == 20000
    assert [queue.id for queue in route.message_queues] == [0, 1, 2, 3]
    for queue in route.message_queues:
        assert (queue.topic.name, queue.permission) == (orders, Permission.READ_WRITE)
        assert (queue.broker.name, queue.broker.endpoints) == ("mqbroker", ENDPOINTS)
        assert list(queue.accept_message_types) == [1, 2, 3, 4]


@pytest.mark.parametrize(("given_one", "shown"), [("r", Permission.READ), ("w", Permission.WRITE)])
def test_a_route_says_what_a_topic_permits(
    given_one: Literal["r", "w"], shown: int, client: Client, broker: RunningBroker, orders: str
) -> None:
    Admin(broker.client()).create_topic(orders, permission=given_one)

    route = client.call("QueryRoute", QueryRouteRequest(topic=Resource(name=orders), endpoints=ENDPOINTS))

    assert {queue.permission for queue in route.message_queues} == {shown}


def test_an_assignment_is_one_for_all_queues(client: Client, orders: str) -> None:
    client.send(message(orders, b"tea"))
    request = QueryAssignmentRequest(topic=Resource(name=orders), group=Resource(name="g"), endpoints=ENDPOINTS)

    [assigned] = client.call("QueryAssignment", request).assignments

    assert (assigned.message_queue.id, assigned.message_queue.broker.endpoints) == (-1, ENDPOINTS)


@given(st.uuids())
def test_an_id_is_the_same_there_and_back(message_id: uuid.UUID) -> None:
    text = messages.text_of(message_id)

    assert messages.id_of(text) == messages.id_of(text.lower()) == message_id
    assert (len(text), text.upper()) == (34, text)
