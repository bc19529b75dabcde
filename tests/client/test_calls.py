"""Each function of the client makes the one request that the contract names and reads its answer."""

import base64
from datetime import UTC, datetime
from uuid import UUID

import pytest
from mqbroker_client import Admin, Broker, Consumer, LocalTransactionState, Message, Producer, Settled

from tests.client.answers import (
    COMMITTED,
    ENTRY,
    MESSAGE_ID,
    PREPARED,
    SENT,
    STILL_PREPARED,
    TRANSACTION_ID,
)
from tests.client.servers import Answer, Asked, HangUp, ScriptedServer, scripted

RECEIVED = Answer(200, {"messages": [ENTRY]})


def producer_of(server: ScriptedServer) -> Producer:
    return Producer(Broker(server.url, "mq_key"), "shop")


def consumer_of(server: ScriptedServer) -> Consumer:
    return Consumer(Broker(server.url, "mq_key"), "coupons")


def line(asked: Asked) -> str:
    return f"{asked.method} {asked.path}"


def test_send_says_all_that_was_given() -> None:
    with scripted(SENT) as server:
        producer_of(server).send(
            "orders",
            b"order 1",
            tags="paid",
            keys=["order-1"],
            properties={"region": "eu"},
            sharding_key="customer-1",
            delay_level=3,
            message_id=UUID(MESSAGE_ID),
        )

    assert line(server.asked[0]) == "POST /v1/messages"
    assert server.asked[0].body == {
        "topic": "orders",
        "body": "order 1",
        "tags": "paid",
        "keys": ["order-1"],
        "properties": {"region": "eu"},
        "sharding_key": "customer-1",
        "delay_level": 3,
        "message_id": MESSAGE_ID,
    }


def test_a_batch_goes_in_one_request() -> None:
    with scripted(Answer(201, {"results": [SENT.body, SENT.body]})) as server:
        sent = producer_of(server).send_batch("orders", [Message("orders", b"1"), Message("orders", b"2")])

    assert line(server.asked[0]) == "POST /v1/messages/batch"
    assert server.asked[0].body["topic"] == "orders"
    assert [message["body"] for message in server.asked[0].body["messages"]] == ["1", "2"]
    assert [result.queue_offset for result in sent] == [7, 7]


def test_a_transaction_is_begun_and_ended_by_its_object() -> None:
    with scripted(PREPARED, STILL_PREPARED, COMMITTED) as server:
        transaction = producer_of(server).begin(
            "orders",
            b"order 1",
            transaction_id=UUID(TRANSACTION_ID),
            check_immunity_seconds=2,
            check_url="http://shop/",
        )
        transaction.unknown("not yet")
        ended = transaction.commit()

    half, unknown, _ = server.asked
    assert line(half) == "POST /v1/transactions"
    assert (half.body["producer_group"], half.body["transaction_id"]) == ("shop", TRANSACTION_ID)
    assert (half.body["check_immunity_seconds"], half.body["check_url"]) == (2, "http://shop/")
    assert (unknown.body["state"], unknown.body["remark"]) == ("UNKNOWN", "not yet")
    assert (ended.state, ended.messages[0].queue_offset) == ("COMMITTED", 7)


def test_several_messages_are_begun_together() -> None:
    messages = [Message("orders", b"1"), Message("invoices", b"2")]
    with scripted(PREPARED) as server:
        transaction = producer_of(server).begin_messages(messages)

    assert [message["topic"] for message in server.asked[0].body["messages"]] == ["orders", "invoices"]
    assert "body" not in server.asked[0].body
    assert transaction.messages == messages


def test_an_end_may_name_the_offset_of_its_half() -> None:
    with scripted(COMMITTED) as server:
        producer_of(server).end(UUID(TRANSACTION_ID), LocalTransactionState.ROLLBACK, commit_log_offset=42)

    assert server.asked[0].body["commit_log_offset"] == 42


def test_a_received_message_is_whole() -> None:
    with scripted(RECEIVED) as server:
        delivery = consumer_of(server).receive(
            "orders", max_messages=8, wait_seconds=3, invisible_seconds=30, filter={"sql": "price > 10"}
        )[0]

    assert line(server.asked[0]) == "POST /v1/consumer-groups/coupons/receive"
    assert server.asked[0].body == {
        "topic": "orders",
        "max_messages": 8,
        "wait_seconds": 3,
        "invisible_seconds": 30,
        "filter": {"sql": "price > 10"},
    }
    assert (delivery.body, delivery.queue_id, delivery.queue_offset) == (b"\xff\x00", 1, 7)
    assert (delivery.receipt_handle, delivery.delivery_attempt) == ("receipt-1", 2)
    assert delivery.message.stored_at == datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert (str(delivery.message.transaction_id), delivery.message.reconsume_times) == (TRANSACTION_ID, 1)


@pytest.mark.parametrize("verb", ["ack", "nack", "extend"])
def test_deliveries_are_settled_by_their_receipts(verb: str) -> None:
    settled = Answer(200, {"results": [{"receipt_handle": "receipt-1", "status": 200}]})
    with scripted(RECEIVED, settled) as server:
        consumer = consumer_of(server)
        deliveries = consumer.receive("orders")
        results = {
            "ack": lambda: consumer.ack(deliveries),
            "nack": lambda: consumer.nack(deliveries, delay_seconds=5),
            "extend": lambda: consumer.extend(deliveries, invisible_seconds=90),
        }[verb]()

    assert results == [Settled("receipt-1", 200)]
    assert line(server.asked[1]) == f"POST /v1/consumer-groups/coupons/{verb}"
    assert server.asked[1].body["receipt_handles"] == ["receipt-1"]


def test_nothing_to_ack_asks_nothing() -> None:
    with scripted(RECEIVED) as server:
        assert consumer_of(server).ack([]) == []

    assert server.asked == []


def test_a_queue_is_read_by_offset() -> None:
    page = Answer(200, {"messages": [ENTRY], "next_offset": 8, "min_offset": 0, "max_offset": 9})
    with scripted(page) as server:
        read = consumer_of(server).pull("%DLQ%coupons", 1, 7, max=5)

    assert line(server.asked[0]) == ("GET /v1/topics/%25DLQ%25coupons/queues/1/messages?offset=7&max=5&wait_seconds=0")
    assert [entry.queue_offset for entry in read.messages] == [7]
    assert (read.next_offset, read.min_offset, read.max_offset) == (8, 0, 9)


def test_a_registration_whose_answer_was_lost_knows_its_secret() -> None:
    with scripted(HangUp(), Answer(200, {"id": 5})) as server:
        endpoint = Admin(Broker(server.url, "mq_key")).register_endpoint("shop", "http://shop/checks")

    assert [asked.body["secret"] for asked in server.asked] == [endpoint.secret] * 2
    assert len(base64.b64decode(endpoint.secret.removeprefix("whsec_"), validate=True)) == 32


def test_an_endpoint_is_registered_and_taken_away() -> None:
    with scripted(Answer(201, {"id": 5}), Answer(204, b"")) as server:
        admin = Admin(Broker(server.url, "mq_key"))
        endpoint = admin.register_endpoint("shop", "http://shop/checks", max_batch=8)
        admin.delete_endpoint("shop", endpoint.id)

    assert endpoint.id == "5"
    assert server.asked[0].body == {"url": "http://shop/checks", "secret": endpoint.secret, "max_batch": 8}
    assert [line(asked) for asked in server.asked] == [
        "POST /v1/producer-groups/shop/endpoints",
        "DELETE /v1/producer-groups/shop/endpoints/5",
    ]
