"""What consumers cannot see yet, or never will, is found by its producers and operators alone, at every door."""

import base64
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer, Document, Wire
from tests.lookup.looking import bodies, listed, send

KEY = "o-1"


@dataclass(frozen=True)
class Callers:
    """A key with each right about a topic, one with all of them about another, and the operator's."""

    reader: Wire
    sender: Wire
    manager: Wire
    reading_sender: Wire
    stranger: Wire
    operator: Wire


@pytest.fixture
def callers(broker: RunningBroker, wire: Wire, orders: str) -> Callers:
    def caller(*scopes: str) -> Wire:
        made = wire.post("/v1/api-keys", {"name": characters.name("key"), "scopes": scopes})
        return Wire(broker.url, made.document["key"])

    return Callers(
        caller(f"read:{orders}"),
        caller(f"produce:{orders}"),
        caller("manage"),
        caller(f"read:{orders}", f"produce:{orders}"),
        caller("read:elsewhere", "produce:elsewhere", "consume:elsewhere"),
        wire,
    )


def half(wire: Wire, producer: Producer, topic: str) -> Document:
    fields = {"producer_group": producer.group, "topic": topic, "body": "hidden", "keys": [KEY]}
    begun: Document = wire.post("/v1/transactions", fields).document
    return begun


def undecided(wire: Wire, producer: Producer, topic: str) -> str:
    return str(half(wire, producer, topic)["message_id"])


def rolled_back(wire: Wire, producer: Producer, topic: str) -> str:
    begun = half(wire, producer, topic)
    end = {"producer_group": producer.group, "state": "ROLLBACK"}
    assert wire.post(f"/v1/transactions/{begun['transaction_id']}/end", end).status == 200
    return str(begun["message_id"])


def by_a_timer(wire: Wire, producer: Producer, topic: str) -> str:
    return str(send(wire, topic, "hidden", keys=[KEY], delay_seconds=3600)["message_id"])


def at_a_level(wire: Wire, producer: Producer, topic: str) -> str:
    return str(send(wire, topic, "hidden", keys=[KEY], delay_level=5)["message_id"])


def recalled(wire: Wire, producer: Producer, topic: str) -> str:
    sent = send(wire, topic, "hidden", keys=[KEY], delay_seconds=3600)
    assert wire.post("/v1/messages/recall", {"recall_handle": sent["recall_handle"]}).status == 200
    return str(sent["message_id"])


HIDDEN = (undecided, rolled_back, by_a_timer, at_a_level, recalled)


def told(answer: Answer, message_id: object) -> tuple[int, str]:
    """What an answer tells, whatever the id."""
    return answer.status, str(answer.document).replace(str(message_id), "ID")


@pytest.mark.parametrize("hide", HIDDEN, ids=lambda hide: hide.__name__)
def test_what_is_not_visible_is_looked_up_by_its_producers_and_operators_alone(
    callers: Callers, producer: Producer, orders: str, hide: Callable[[Wire, Producer, str], str]
) -> None:
    message_id = hide(callers.operator, producer, orders)
    absent = uuid.uuid4()

    for way in ("", "/trace"):
        for caller in (callers.sender, callers.manager, callers.reading_sender):
            assert caller.get(f"/v1/messages/{message_id}{way}").status == 200
        for caller in (callers.reader, callers.stranger):
            refused = told(caller.get(f"/v1/messages/{message_id}{way}"), message_id)
            assert refused == told(caller.get(f"/v1/messages/{absent}{way}"), absent)
            assert refused[0] == 404


def test_by_key_readers_find_entries_only(callers: Callers, producer: Producer, orders: str) -> None:
    for hide in HIDDEN:
        hide(callers.operator, producer, orders)
    send(callers.operator, orders, "seen", keys=[KEY])

    assert bodies(listed(callers.reader, topic=orders, key=KEY)) == ["seen"]
    assert bodies(listed(callers.reading_sender, topic=orders, key=KEY)) == ["seen", *["hidden"] * len(HIDDEN)]
    for caller in (callers.sender, callers.manager, callers.stranger):
        assert caller.get(f"/v1/messages?topic={orders}&key={KEY}").status == 403


@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", "TRANS_CHECK_MAX_TIME_TOPIC"])
def test_the_topics_of_what_waits_or_was_set_aside_are_listed_by_operators_alone(
    broker: RunningBroker, callers: Callers, producer: Producer, orders: str, topic: str
) -> None:
    at_a_level(callers.operator, producer, orders)
    made = callers.operator.post("/v1/api-keys", {"name": characters.name("key"), "scopes": ["read:*", "produce:*"]})
    reader = Wire(broker.url, made.document["key"])

    for query in ("", f"&key={KEY}"):
        assert reader.get(f"/v1/messages?topic={topic}{query}").status == 403
        assert callers.operator.get(f"/v1/messages?topic={topic}{query}").status in (200, 404)


def test_a_message_is_its_readers_once_it_is_visible(callers: Callers, producer: Producer, orders: str) -> None:
    begun = half(callers.operator, producer, orders)
    path = f"/v1/messages/{begun['message_id']}"
    assert callers.reader.get(path).status == 404
    end = {"producer_group": producer.group, "state": "COMMIT"}
    assert callers.operator.post(f"/v1/transactions/{begun['transaction_id']}/end", end).status == 200

    assert callers.reader.get(path).document["message"]["body"] == "hidden"
    assert callers.reader.get(f"{path}/trace").document["state"] == "VISIBLE"
    # These never needed to read it.
    assert {caller.get(path).status for caller in (callers.sender, callers.manager)} == {404}


def test_a_dead_letter_is_still_its_readers(callers: Callers, consumer: Consumer, orders: str) -> None:
    callers.operator.call("PUT", f"/v1/consumer-groups/{consumer.group}", b'{"retry_policy": {"kind": "none"}}')
    message_id = send(callers.operator, orders, "dead")["message_id"]
    eventually(lambda: consumer.nack(consumer.receive(orders, max_messages=1)))

    assert callers.reader.get(f"/v1/messages/{message_id}").status == 200
    assert callers.reader.get(f"/v1/messages/{message_id}/trace").status == 200


def test_no_call_of_a_transaction_tells_whether_it_exists(callers: Callers, producer: Producer, orders: str) -> None:
    begun = half(callers.operator, producer, orders)["transaction_id"]
    own = characters.name("group")

    def asks(transaction_id: object) -> list[tuple[int, str]]:
        path = f"/v1/transactions/{transaction_id}"
        ends = [{"producer_group": own, "state": state} for state in ("COMMIT", "ROLLBACK", "UNKNOWN")]
        bulk = {"op": "end", "transaction_id": str(transaction_id), **ends[0]}
        answers = [callers.stranger.get(path), *[callers.stranger.post(f"{path}/end", end) for end in ends]]
        [result] = callers.stranger.bulk(bulk)
        return [
            *[told(answer, transaction_id) for answer in answers],
            (result["status"], str(result).replace(str(transaction_id), "ID")),
        ]

    refused = asks(begun)

    assert refused == asks(uuid.uuid4())
    assert {status for status, _ in refused} == {404}


def test_a_recall_tells_nothing_of_a_message_of_others(callers: Callers, orders: str) -> None:
    sent = send(callers.operator, orders, "later", delay_seconds=3600)
    absent = uuid.uuid4()
    forged = base64.urlsafe_b64encode(json.dumps([str(absent), str(absent)]).encode()).decode().rstrip("=")

    refused = callers.stranger.post("/v1/messages/recall", {"recall_handle": sent["recall_handle"]})

    unknown = callers.stranger.post("/v1/messages/recall", {"recall_handle": forged})
    assert told(refused, sent["message_id"]) == told(unknown, absent)
    assert (refused.status, refused.document["code"]) == (404, "message_not_found")
    # It waits as before.
    assert callers.sender.post("/v1/messages/recall", {"recall_handle": sent["recall_handle"]}).status == 200


def test_no_call_of_a_subscription_tells_whether_it_exists(callers: Callers, orders: str) -> None:
    name, absent = characters.name("push"), characters.name("push")
    send(callers.operator, orders, "order")
    push = json.dumps({"group": name, "topic": orders, "url": "http://127.0.0.1:9/", "paused": True})
    assert callers.operator.call("PUT", f"/v1/subscriptions/{name}", push.encode()).status == 201

    for method, way in (("GET", ""), ("DELETE", ""), ("POST", "/rotate-secret")):
        body = b"{}" if method == "POST" else None
        refused, unknown = (
            told(callers.stranger.call(method, f"/v1/subscriptions/{one}{way}", body), one) for one in (name, absent)
        )
        assert refused == unknown
        assert refused[0] == 404


def test_offsets_are_those_of_topics_that_a_key_may_read(
    broker: RunningBroker, callers: Callers, consumer: Consumer, orders: str, coupons: str
) -> None:
    for topic in (orders, coupons):
        send(callers.operator, topic, "order")
        consumer.ack(consumer.receive(topic, wait_seconds=5))
    scopes = [f"consume:{consumer.group}", f"read:{orders}"]
    made = callers.operator.post("/v1/api-keys", {"name": characters.name("key"), "scopes": scopes})
    narrow = Wire(broker.url, made.document["key"])
    path = f"/v1/consumer-groups/{consumer.group}/offsets"
    lacking = f"The key {made.document['name']!r} lacks the scope read:{coupons}: add it at /v1/api-keys."

    def reset(topic: str, *, dry_run: bool) -> Answer:
        asked = f'{{"topic": "{topic}", "to": "earliest", "dry_run": {str(dry_run).lower()}}}'
        return narrow.call("PUT", path, asked.encode())

    assert {queue["topic"] for queue in narrow.get(path).document["results"]} == {orders}
    assert narrow.get(f"{path}?topic={orders}").status == 200
    assert reset(orders, dry_run=False).document["replayed"] == 1
    for refused in (
        narrow.get(f"{path}?topic={coupons}"),
        reset(coupons, dry_run=True),
        reset(coupons, dry_run=False),
    ):
        assert (refused.status, refused.document["detail"]) == (403, lacking)
    assert callers.manager.get(f"{path}?topic={coupons}").status == 200
