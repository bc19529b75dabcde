"""Messages over three cells: each topic lies in one, and whatever names it, a message or a delivery leads there."""

import time
import uuid
from collections.abc import Sequence
from functools import partial

import pytest
from mqbroker_client import Consumer, LocalTransactionState, Message, Producer
from mqbroker_client.core import errors

from tests.broker import characters
from tests.broker.cells import Cells
from tests.broker.characters import bodies
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import told
from tests.broker.wire import Document, Wire

HANDLE_CHARACTERS = 38
# Of configuration and of keys.
LONGER_THAN_CACHED_SECONDS = 5.0
# Between two transactions while the control is away.
PAUSE_SECONDS = 0.05


def test_a_message_lies_in_the_cell_of_its_topic_and_is_found_by_its_id(
    broker: RunningBroker, cells: Cells, consumer: Consumer, spread: Sequence[str]
) -> None:
    for cell, topic in enumerate(spread):
        sent = Producer(broker.client(), "any").send(topic, b"order")
        chosen = broker.wire().post("/v1/messages", {"topic": topic, "body": "x", "message_id": str(uuid.uuid4())})

        assert cells.stored(topic) == [2 if cell == each else 0 for each in range(3)]
        for web in range(2):
            for message_id in (sent.message_id, chosen.document["message_id"]):
                found = broker.wire(web).get(f"/v1/messages/{message_id}")
                assert (found.status, found.document["message"]["topic"]) == (200, topic)
                assert broker.wire(web).get(f"/v1/messages/{message_id}/trace").document["state"] == "VISIBLE"
        assert sorted(bodies(consumer.receive(topic, max_messages=2))) == [b"order", b"x"]


def test_the_handles_of_the_control_are_as_they_were_and_those_of_several_cells_are_acked_together(
    broker: RunningBroker, wire: Wire, consumer: Consumer, spread: Sequence[str]
) -> None:
    handles = []
    for topic in spread:
        Producer(broker.client(), "any").send(topic, b"order")
        handles += [delivery.receipt_handle for delivery in consumer.receive(topic)]

    acked = wire.post(f"/v1/consumer-groups/{consumer.group}/ack", {"receipt_handles": [*handles, "none"]})
    again = broker.wire(1).post(f"/v1/consumer-groups/{consumer.group}/ack", {"receipt_handles": handles})

    assert [len(handle) == HANDLE_CHARACTERS for handle in handles] == [True, False, False]
    assert [one["status"] for one in acked.document["results"]] == [200, 200, 200, 410]
    assert [one["status"] for one in again.document["results"]] == [410, 410, 410]


def test_a_transaction_is_ended_at_another_process_whoever_chose_its_id(
    broker: RunningBroker, producer: Producer, consumer: Consumer, spread: Sequence[str]
) -> None:
    distant = Producer(broker.client(web=1), producer.group)
    for topic in spread:
        made = producer.begin(topic, b"made")
        chosen = producer.begin(topic, b"chosen", transaction_id=uuid.uuid4())
        distant.end(made.transaction_id, LocalTransactionState.COMMIT)
        distant.end(chosen.transaction_id, LocalTransactionState.ROLLBACK)

        assert told(broker.wire(), made.transaction_id)["state"] == "COMMITTED"
        assert told(broker.wire(), chosen.transaction_id)["state"] == "ROLLED_BACK"
        assert bodies(consumer.receive(topic)) == [b"made"]
    unknown = broker.wire().post(
        f"/v1/transactions/{uuid.uuid4()}/end", {"producer_group": producer.group, "state": "COMMIT"}
    )
    assert unknown.problem["code"] == "transaction_not_found"


def test_a_transaction_over_two_cells_is_refused_and_stores_nothing(
    wire: Wire, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    new = characters.name("new")
    messages = [{"topic": topic, "body": "x"} for topic in (new, spread[1], spread[2])]

    refused = wire.post("/v1/transactions", {"producer_group": producer.group, "messages": messages})

    assert (refused.status, refused.problem["code"]) == (400, "transaction_spans_cells")
    assert f"{spread[1]} in c1, {spread[2]} in c2" in refused.problem["detail"]
    assert [cells.stored(topic) for topic in spread[1:]] == [[0, 0, 0], [0, 0, 0]]
    assert cells.sql(0, "SELECT count(*) FROM topic WHERE name = %s", new) == [(0,)]


def test_topics_that_a_transaction_makes_lie_beside_the_one_that_there_is(
    wire: Wire, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    cells.open(0)
    new = characters.name("new")
    messages = [{"topic": topic, "body": "x"} for topic in (new, spread[2])]

    begun = wire.post("/v1/transactions", {"producer_group": producer.group, "messages": messages})

    assert begun.status == 201, begun.document
    assert cells.stored(new) == [0, 0, 1]


def test_a_producer_is_asked_about_its_transactions_in_every_cell(
    broker: RunningBroker, producer: Producer, producer_endpoint: ProducerEndpoint, spread: Sequence[str]
) -> None:
    producer_endpoint.replies(states("COMMIT"))

    begun = [producer.begin(topic, b"forgotten") for topic in spread]

    for one in begun:
        eventually(partial(_is_committed, broker.wire(), one.transaction_id), within_seconds=15)


def _is_committed(wire: Wire, transaction_id: uuid.UUID) -> bool:
    decided = told(wire, transaction_id)
    return (decided["state"], decided["history"][-1].get("by")) == ("COMMITTED", "check")


def test_a_poll_gets_the_checks_of_every_cell(wire: Wire, producer: Producer, spread: Sequence[str]) -> None:
    begun = {str(producer.begin(topic, b"forgotten").transaction_id) for topic in spread}
    asked: set[str] = set()

    while asked < begun:
        answer = wire.post(f"/v1/producer-groups/{producer.group}/checks/receive", {"wait_seconds": 10})
        found = {one["transaction_id"] for one in answer.document["transactions"]}
        assert found, f"only {asked} of {begun}"
        asked |= found

    assert asked == begun


def test_delays_and_retries_are_those_of_the_cell(wire: Wire, consumer: Consumer, spread: Sequence[str]) -> None:
    group = f"/v1/consumer-groups/{consumer.group}"
    for topic in spread:
        for delay in ({"delay_level": 1}, {"delay_seconds": 1.2}):
            assert wire.post("/v1/messages", {"topic": topic, "body": "late", **delay}).status == 201
        for _ in range(2):
            [delivery] = eventually(partial(consumer.receive, topic, max_messages=1), within_seconds=15)
            nacked = wire.post(
                f"{group}/nack", {"receipt_handles": [delivery.receipt_handle], "delay_seconds": 0, "reason": topic}
            )
            [again] = eventually(partial(consumer.receive, topic, max_messages=1), within_seconds=15)
            acked = wire.post(f"{group}/ack", {"receipt_handles": [again.receipt_handle]})

            assert [one["status"] for one in (*nacked.document["results"], *acked.document["results"])] == [200, 200]
            assert (again.message.message_id, again.delivery_attempt) == (delivery.message.message_id, 2)


def test_a_cell_that_is_away_is_named_and_the_topics_of_the_others_go_on(
    broker: RunningBroker, wire: Wire, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    begun = [producer.begin(topic, b"half") for topic in spread]

    with cells.away(2):
        refused = eventually(partial(_refusal, wire, spread[2], "cell_away"))
        for topic in spread[:2]:
            assert wire.post("/v1/messages", {"topic": topic, "body": "x"}).status == 201
        for one in begun[:2]:
            producer.end(one.transaction_id, LocalTransactionState.COMMIT)

    assert "The cell c2 is away" in refused["detail"]
    eventually(lambda: wire.post("/v1/messages", {"topic": spread[2], "body": "x"}).status == 201, within_seconds=20)
    producer.end(begun[2].transaction_id, LocalTransactionState.COMMIT)


def _refusal(wire: Wire, topic: str, code: str) -> Document | None:
    """The refusal with this code; a send whose commit was under way as the cell went has another one."""
    answer = wire.post("/v1/messages", {"topic": topic, "body": "x"})
    return answer.problem if answer.status == 503 and answer.document["code"] == code else None


def test_messages_flow_while_the_control_is_away(
    broker: RunningBroker, cells: Cells, producer: Producer, consumer: Consumer, spread: Sequence[str]
) -> None:
    topic = spread[1]
    for web in range(2):
        told_before = Producer(broker.client(web), producer.group).begin(topic, b"0")
        told_before.commit()
    assert len(consumer.receive(topic, max_messages=2)) == 2
    statuses: list[int] = []

    with cells.away(0):
        until = time.monotonic() + LONGER_THAN_CACHED_SECONDS
        while time.monotonic() < until:
            wire = broker.wire(len(statuses) % 2)
            half = {"producer_group": producer.group, "topic": topic, "body": "x"}
            begun = wire.post("/v1/transactions", half)
            transaction_id = begun.document.get("transaction_id")
            end = {"producer_group": producer.group, "state": "COMMIT"}
            ended = wire.post(f"/v1/transactions/{transaction_id}/end", end)
            statuses += [begun.status, ended.status]
            time.sleep(PAUSE_SECONDS)

    assert set(statuses) == {201, 200}
    assert statuses.count(200) == len(statuses) / 2
    eventually(lambda: wire.post("/v1/messages", {"topic": spread[0], "body": "x"}).status == 201, within_seconds=20)


def test_what_a_receive_makes_at_its_first_use_is_in_every_cell(
    cells: Cells, consumer: Consumer, producer: Producer, spread: Sequence[str]
) -> None:
    for topic in spread[1:]:
        producer.send(topic, b"order")
        consumer.nack(consumer.receive(topic), delay_seconds=0)

    made = (
        "SELECT t.name, t.queues, array_agg(q.topic_id ORDER BY q.queue_id) FROM topic AS t, retry_queue AS q, "
        "consumer_group AS g WHERE t.name = '%%RETRY%%' || g.name AND q.group_id = g.id AND g.name = %s GROUP BY t.id"
    )
    at_control = cells.sql(0, made, consumer.group)
    assert len(at_control) == 1
    assert [cells.sql(cell, made, consumer.group) for cell in (1, 2)] == [at_control] * 2


def test_deliveries_and_messages_of_two_cells_are_refused_together(
    broker: RunningBroker, consumer: Consumer, spread: Sequence[str]
) -> None:
    producer = Producer(broker.client(), "any")
    for topic in spread:
        producer.send(topic, b"here")
    [delivery] = consumer.receive(spread[1])

    with pytest.raises(errors.TransactionSpansCells, match=r"lie in several cells \(c0, c1\)"):
        consumer.forward([delivery], [Message(spread[0], b"elsewhere")])
    [sent] = consumer.forward([delivery], [Message(spread[1], b"beside it")])

    assert sent.queue_offset is not None
    assert bodies(consumer.receive(spread[1])) == [b"beside it"]
