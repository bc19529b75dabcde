"""Operators over three cells: what lies in several of them is listed, counted and sent again together."""

import json
from collections.abc import Sequence
from functools import partial

from mqbroker_client import Admin, Consumer, LocalTransactionState, Producer

from tests.broker.characters import bodies
from tests.broker.endpoints import ProducerEndpoint, says
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire


def test_dead_letters_of_all_cells_are_listed_and_sent_again_each_in_its_cell(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, spread: Sequence[str]
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    sent = []
    for topic in spread:
        sent.append(str(producer.send(topic, topic.encode()).message_id))
        consumer.nack(consumer.receive(topic))
    listed: list[str] = []
    cursor: int | None = 0
    while cursor is not None:
        page = wire.get(f"/v1/dead-letters/{consumer.group}?limit=2&cursor={cursor}").document
        listed += [letter["message"]["message_id"] for letter in page["results"]]
        cursor = page["next"]
    received = {body for _ in spread for body in bodies(consumer.receive(f"%DLQ%{consumer.group}", max_messages=1))}

    some = wire.post(f"/v1/dead-letters/{consumer.group}/redrive", {"message_ids": [sent[2], sent[0]]})
    rest = wire.post(f"/v1/dead-letters/{consumer.group}/redrive", {"all": True})

    assert listed == sent
    assert received == {topic.encode() for topic in spread}
    assert [(one["message_id"], one["status"]) for one in some.document["results"]] == [(sent[2], 200), (sent[0], 200)]
    assert [one["message_id"] for one in rest.document["results"]] == [sent[1]]
    for topic in spread:
        assert bodies(consumer.receive(topic)) == [topic.encode()]


def test_a_group_or_a_topic_with_undecided_transactions_in_any_cell_is_kept(
    wire: Wire, producer: Producer, spread: Sequence[str]
) -> None:
    begun = producer.begin(spread[2], b"half")

    kept = [wire.call("DELETE", path) for path in (f"/v1/producer-groups/{producer.group}", f"/v1/topics/{spread[2]}")]
    producer.end(begun.transaction_id, LocalTransactionState.ROLLBACK)
    gone = wire.call("DELETE", f"/v1/producer-groups/{producer.group}")

    assert [(answer.status, answer.problem["code"]) for answer in kept] == [(422, "message_illegal")] * 2
    assert gone.status == 204


def test_a_topic_is_shown_from_its_cell_and_the_stats_are_those_of_all_cells(
    wire: Wire, producer: Producer, spread: Sequence[str]
) -> None:
    def messages() -> int:
        found: int = wire.get("/v1/stats").document["totals"]["messages"]
        return found

    before = messages()
    for topic in spread:
        producer.send(topic, b"order", queue_id=1)

    for topic in spread:
        offsets = wire.get(f"/v1/topics/{topic}").document["offsets"]
        assert [queue["max_offset"] for queue in offsets] == [0, 1]
    eventually(lambda: messages() >= before + len(spread))
    assert wire.get("/v1/stats").document["missing"] == []


def test_a_delayed_message_is_recalled_and_offsets_are_reset_in_the_cell_of_the_topic(
    wire: Wire, consumer: Consumer, producer: Producer, spread: Sequence[str]
) -> None:
    for topic in spread:
        waiting = wire.post("/v1/messages", {"topic": topic, "body": "late", "delay_seconds": 3600}).document
        recalled = wire.post("/v1/messages/recall", {"recall_handle": waiting["recall_handle"]})
        producer.send(topic, b"first")
        consumer.ack(consumer.receive(topic))
        reset = wire.call(
            "PUT",
            f"/v1/consumer-groups/{consumer.group}/offsets",
            json.dumps({"topic": topic, "to": "earliest"}).encode(),
        )

        assert (recalled.status, recalled.document["state"]) == (200, "RECALLED")
        assert (reset.status, reset.document["replayed"]) == (200, 1)
        assert bodies(consumer.receive(topic)) == [b"first"]


def test_messages_of_every_cell_are_pushed(
    wire: Wire, producer: Producer, consumer: Consumer, endpoint: ProducerEndpoint, spread: Sequence[str]
) -> None:
    endpoint.replies(says(200, {}))
    for number, topic in enumerate(spread):
        subscription = {"group": f"{consumer.group}-{number}", "topic": topic, "url": endpoint.url}
        made = wire.call("PUT", f"/v1/subscriptions/{consumer.group}-{number}", json.dumps(subscription).encode())
        assert made.status == 201, made.document
        producer.send(topic, topic.encode())

    for topic in spread:
        eventually(partial(_is_pushed, endpoint, topic), within_seconds=15)


def _is_pushed(endpoint: ProducerEndpoint, topic: str) -> bool:
    return any(topic in json.dumps(asked.document) for asked in endpoint.asked)


def test_queues_of_the_broker_s_own_topics_are_read_by_offset_in_the_cell_that_is_named(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, spread: Sequence[str]
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    sent = {f"c{cell}": str(producer.send(topic, b"order").message_id) for cell, topic in enumerate(spread)}
    for topic in spread:
        consumer.nack(consumer.receive(topic))
    dead = f"%25DLQ%25{consumer.group}"
    listed = f"/v1/messages?topic={dead}&cell="
    standing = f"/v1/consumer-groups/{consumer.group}/offsets?topic={dead}&cell="

    unnamed = wire.get(f"/v1/topics/{dead}/queues/0/messages?offset=0")
    elsewhere = wire.get(f"/v1/topics/{spread[1]}/queues/0/messages?offset=0&cell=c2")
    pulled = {name: wire.get(f"/v1/topics/{dead}/queues/0/messages?cell={name}").document for name in sent}
    found = {name: wire.get(listed + name).document["results"] for name in sent}
    ends = {name: wire.get(standing + name).document["results"][0]["max_offset"] for name in sent}

    assert (unnamed.status, unnamed.problem["code"]) == (422, "message_illegal")
    assert "in 3 cells: choose a cell with the parameter cell, one of c0, c1, c2." in unnamed.problem["detail"]
    assert elsewhere.problem["detail"] == f"The cell 'c2' has no queues of the topic {spread[1]}: its queues are in c1."
    assert {name: [one["message"]["message_id"] for one in page["messages"]] for name, page in pulled.items()} == {
        name: [message_id] for name, message_id in sent.items()
    }
    assert {name: [one["message"]["message_id"] for one in rows] for name, rows in found.items()} == {
        name: [message_id] for name, message_id in sent.items()
    }
    assert ends == dict.fromkeys(sent, 1)
