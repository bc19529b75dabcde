"""A message is found by its id as long as it is stored, visible or not, by every key that may produce to its topic."""

import uuid

import pytest
from mqbroker_client import Producer

from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire, problem
from tests.lookup.looking import send


def found(wire: Wire, message_id: object) -> Document:
    answer = wire.get(f"/v1/messages/{message_id}")
    assert answer.status == 200, answer
    document: Document = answer.document
    return document


def test_a_message_is_found_as_it_was_sent(wire: Wire, orders: str) -> None:
    fields = {"tags": "paid", "keys": ["o-1", "c-1"], "properties": {"region": "eu"}, "sharding_key": "c-1"}
    sent = send(wire, orders, "order 1", **fields, born_at="2024-01-01T00:00:00.5Z")

    assert found(wire, sent["message_id"]) == {
        "message": {
            "message_id": sent["message_id"],
            "topic": orders,
            "body": "order 1",
            **fields,
            "born_at": "2024-01-01T00:00:00.500000Z",
            "stored_at": sent["stored_at"],
            "commit_log_offset": sent["commit_log_offset"],
            "reconsume_times": 0,
        },
        "queue_id": sent["queue_id"],
        "queue_offset": sent["queue_offset"],
    }


def test_a_body_is_given_out_in_the_form_it_was_sent_in(wire: Wire, orders: str) -> None:
    sent = wire.post("/v1/messages", {"topic": orders, "body_base64": "AP8="}).document

    message = found(wire, sent["message_id"])["message"]

    assert message["body_base64"] == "AP8="
    assert "body" not in message


def test_a_half_message_is_found_and_has_no_place_in_a_queue_before_it_is_committed(
    wire: Wire, producer: Producer, orders: str
) -> None:
    transaction = producer.begin(orders, b"order 1")
    before = found(wire, transaction.message_id)

    transaction.commit()

    assert before["queue_offset"] is None
    assert before["message"]["transaction_id"] == str(transaction.transaction_id)
    after = found(wire, transaction.message_id)
    assert after == {**before, "queue_offset": after["queue_offset"]}
    assert after["queue_offset"] >= 0


def test_a_delayed_message_is_found_and_has_no_place_in_a_queue_yet(wire: Wire, orders: str) -> None:
    for delay in ({"delay_seconds": 600}, {"delay_level": 5}):
        sent = send(wire, orders, "later", **delay)

        assert found(wire, sent["message_id"])["queue_offset"] is None


@pytest.mark.parametrize("way", ["", "/trace"])
def test_what_was_never_stored_is_not_found(wire: Wire, way: str) -> None:
    message_id = uuid.uuid4()

    unknown = wire.get(f"/v1/messages/{message_id}{way}")
    no_id = wire.get(f"/v1/messages/order-1{way}")

    assert unknown.problem == problem(
        404, "message_not_found", f"There is no message {message_id}: it was never stored, or retention has deleted it."
    )
    assert no_id.problem == problem(404, "message_not_found", "There is no message order-1: a message_id is a UUID.")


@pytest.mark.parametrize("way", ["", "/trace"])
def test_a_key_finds_what_it_may_read(broker: RunningBroker, wire: Wire, orders: str, way: str) -> None:
    message_id = send(wire, orders, "order 1")["message_id"]

    def status(*scopes: str) -> int:
        made = wire.post("/v1/api-keys", {"name": characters.name("key"), "scopes": scopes}).document
        return Wire(broker.url, made["key"]).get(f"/v1/messages/{message_id}{way}").status

    assert status("read:orders-*") == 200
    assert status("read:coupons-*") == 404
    assert status("manage", "produce:*", "consume:*") == 404
    assert status("metrics", "consume:*") == 403
    assert Wire(broker.url, None).get(f"/v1/messages/{message_id}{way}").status == 401
