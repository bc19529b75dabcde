"""Ids: what is sent again under its id is stored once, however many send it at the same time."""

from collections import Counter
from uuid import uuid4

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.load import Crowd, at_once
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire, problem

IDS = 60
COPIES = 6


def test_a_message_that_is_sent_again_is_answered_alike_and_stored_once(
    producer: Producer, consumer: Consumer, wire: Wire, orders: str
) -> None:
    document = {"topic": orders, "body": "order 1", "message_id": str(uuid4())}

    first = wire.post("/v1/messages", document)
    again = wire.post("/v1/messages", document)

    assert (first.status, again.status) == (201, 200)
    assert again.document == {**first.document, "duplicate": True}
    assert len(consumer.receive(orders)) == 1


def test_the_id_of_a_message_is_not_taken_for_another_one(wire: Wire, orders: str, coupons: str) -> None:
    message_id = str(uuid4())
    document = {"topic": orders, "body": "order 1", "message_id": message_id}
    wire.post("/v1/messages", document)

    refusal = problem(
        409,
        "message_id_reused",
        f"The message_id {message_id} was used for another message: use a new id for a new message.",
    )
    assert wire.post("/v1/messages", {**document, "body": "order 2"}).problem == refusal
    assert wire.post("/v1/messages", {**document, "topic": coupons}).problem == refusal


async def test_of_many_copies_sent_at_once_to_two_web_processes_one_is_stored(
    broker: RunningBroker, orders: str
) -> None:
    Admin(broker.client()).create_topic(orders, queues=1)
    ids = [str(uuid4()) for _ in range(IDS)]

    async def send(message_id: str) -> tuple[str, int, Document]:
        message = {"topic": orders, "body": f"order {message_id}", "message_id": message_id}
        return message_id, *await crowd.post("/v1/messages", message)

    async with Crowd(broker.urls) as crowd:
        answers = await at_once(send, ids * COPIES)
        _, page = await crowd.get(f"/v1/topics/{orders}/queues/0/messages?offset=0&max=1000")

    statuses = Counter((message_id, status) for message_id, status, _ in answers)
    assert {statuses[message_id, 201] for message_id in ids} == {1}
    assert {statuses[message_id, 200] for message_id in ids} == {COPIES - 1}
    places = {(message_id, document["queue_offset"]) for message_id, _, document in answers}
    assert len(places) == IDS
    assert sorted(entry["message"]["message_id"] for entry in page["messages"]) == sorted(ids)


async def test_of_many_copies_of_a_delayed_message_sent_at_once_to_two_web_processes_one_waits(
    broker: RunningBroker, orders: str
) -> None:
    Admin(broker.client()).create_topic(orders, queues=1)
    ids = [str(uuid4()) for _ in range(IDS)]

    async def send(message_id: str) -> tuple[int, tuple[str, str]]:
        message = {"topic": orders, "body": f"order {message_id}", "message_id": message_id, "delay_seconds": 3600}
        status, sent = await crowd.post("/v1/messages", message)
        return status, (sent["deliver_at"], sent["recall_handle"])

    async with Crowd(broker.urls) as crowd:
        answers = await at_once(send, ids * COPIES)

    with psycopg.connect(broker.database_url) as connection:
        timers = connection.execute("SELECT message_id::text FROM timer WHERE message_id = ANY(%s)", (ids,)).fetchall()
    assert Counter(status for status, _ in answers) == {201: IDS, 200: IDS * (COPIES - 1)}
    assert len({wait for _, wait in answers}) == IDS
    assert sorted(message_id for (message_id,) in timers) == sorted(ids)


async def test_of_two_messages_that_race_for_one_id_one_is_stored_and_the_other_refused(
    broker: RunningBroker, orders: str
) -> None:
    ids = [str(uuid4()) for _ in range(IDS)]

    async def send(numbered: tuple[str, int]) -> tuple[str, int]:
        message_id, number = numbered
        message = {"topic": orders, "body": f"order {number}", "message_id": message_id}
        return message_id, (await crowd.post("/v1/messages", message))[0]

    async with Crowd(broker.urls) as crowd:
        answers = await at_once(send, [(message_id, number) for message_id in ids for number in (1, 2)])

    statuses = {message_id: sorted(status for id_, status in answers if id_ == message_id) for message_id in ids}
    assert [found for found in statuses.items() if found[1] != [201, 409]] == []


async def test_of_many_copies_of_a_begin_one_transaction_is_begun(
    broker: RunningBroker, producer: Producer, orders: str
) -> None:
    ids = [str(uuid4()) for _ in range(IDS)]
    group = {"producer_group": producer.group}

    async def begin(transaction_id: str) -> int:
        half = {"topic": orders, "body": "order", "transaction_id": transaction_id, **group}
        return (await crowd.post("/v1/transactions", half))[0]

    async with Crowd(broker.urls) as crowd:
        statuses = Counter(await at_once(begin, ids * COPIES))
        ends = await crowd.bulk({"op": "end", "transaction_id": id_, "state": "COMMIT", **group} for id_ in ids)

    assert statuses == {201: IDS, 200: IDS * (COPIES - 1)}
    assert len({(end["messages"][0]["queue_id"], end["messages"][0]["queue_offset"]) for end in ends}) == IDS


@pytest.mark.parametrize("way", [{}, {"sharding_key": "k"}])
def test_of_the_operations_of_a_bulk_with_one_id_the_first_is_stored_and_no_other_is_spoiled(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, way: Document
) -> None:
    """Whichever way each of them is written."""
    taken = {"topic": orders, "body": "order 1", "message_id": str(uuid4())}
    half = {"op": "half", **taken, "producer_group": producer.group}
    send = {"op": "send", **taken}

    results = wire.bulk(
        *({"op": "send", "topic": orders, "body": f"before {number}"} for number in range(5)),
        {**send, **way},
        {**half, "transaction_id": str(uuid4())},
        send,
        {**send, "body": "order 2"},
        *({"op": "send", "topic": orders, "body": f"after {number}"} for number in range(5)),
    )

    statuses = [result["status"] for result in results]
    assert statuses == [201] * 5 + [201, 409, 200, 409] + [201] * 5
    received = [body for _ in range(2) for body in bodies(consumer.receive(orders))]
    assert b"order 1" in received
    assert b"order 2" not in received


async def test_a_topic_and_groups_that_thousands_use_first_at_once_are_made_once(
    broker: RunningBroker, orders: str
) -> None:
    group = {"producer_group": f"{orders}-service"}
    half = {"op": "half", "topic": orders, "body": "order", **group}

    async with Crowd(broker.urls) as crowd:
        results = await at_once(crowd.bulk, [[half] * 500] * 4)

    assert Counter(result["status"] for some in results for result in some) == {201: 2000}


def test_a_half_message_is_not_sent_by_a_plain_message_of_its_id(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    message = {"topic": orders, "body": "order 1", "message_id": str(uuid4())}
    wire.post("/v1/transactions", {**message, "producer_group": producer.group})

    answer = wire.post("/v1/messages", message)

    assert answer.problem == problem(
        409,
        "message_id_reused",
        f"The message_id {message['message_id']} was used for another message: use a new id for a new message.",
    )
    assert consumer.receive(orders) == []
