"""Dead letters: what a group gave up, and its redrive: of one, some or all, to its readers or to another topic."""

from functools import partial
from typing import Any

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Document, Wire, problem

UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def dead(broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str) -> list[str]:
    """The ids of four messages that a group has given up, the oldest first."""
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    sent = [producer.send(orders, f"order {number}".encode(), queue_id=0) for number in range(4)]
    consumer.nack(consumer.receive(orders))
    return [str(one.message_id) for one in sent]


def letters(wire: Wire, consumer: Consumer, **query: int) -> Document:
    """A page of the group's dead letters."""
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    found: Document = wire.get(f"/v1/dead-letters/{consumer.group}?{asked}").document
    return found


def redrive(wire: Wire, consumer: Consumer, **asked: Any) -> list[Document]:
    """What became of each dead letter."""
    answer = wire.post(f"/v1/dead-letters/{consumer.group}/redrive", asked)
    assert answer.status == 200, answer
    found: list[Document] = answer.document["results"]
    return found


def unknown(consumer: Consumer, message_id: str) -> Document:
    """The answer for a message that is no dead letter."""
    detail = (
        f"Message {message_id} is not among the dead letters of {consumer.group}: it never became one, or was "
        "already redriven."
    )
    return problem(404, "message_not_found", detail, message_id=message_id)


def test_dead_letters_are_listed_page_by_page_the_oldest_first(wire: Wire, consumer: Consumer, dead: list[str]) -> None:
    first = letters(wire, consumer, limit=3)
    pages = [first, second := letters(wire, consumer, limit=3, cursor=first["next"])]
    # Over cells a page ends with its cell.
    while second["next"] is not None:
        pages.append(second := letters(wire, consumer, limit=3, cursor=second["next"]))

    found = [letter["message"]["message_id"] for page in pages for letter in page["results"]]
    assert found == dead
    assert all(page["results"] == [] for page in pages[2:])


def test_a_page_of_large_dead_letters_ends_with_the_one_that_fills_it(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    for _ in range(8):
        producer.send(orders, b"x" * (3 * 1024 * 1024), queue_id=0)
    while deliveries := consumer.receive(orders):
        consumer.nack(deliveries)

    first = letters(wire, consumer, limit=200)
    second = letters(wire, consumer, limit=200, cursor=first["next"])

    assert [len(page["results"]) for page in (first, second)] == [6, 2]
    assert second["next"] is None


def test_a_redrive_of_some_is_answered_for_each_in_its_order(
    wire: Wire, consumer: Consumer, orders: str, dead: list[str]
) -> None:
    again = f"%RETRY%{consumer.group}"

    results = redrive(wire, consumer, message_ids=[dead[2], UNKNOWN, dead[0]])

    assert results == [
        {"message_id": dead[2], "status": 200, "topic": again},
        unknown(consumer, UNKNOWN),
        {"message_id": dead[0], "status": 200, "topic": again},
    ]
    deliveries = received_until_empty(consumer, orders)
    assert sorted(bodies(deliveries)) == [b"order 0", b"order 2"]
    assert [(delivery.delivery_attempt, delivery.message.topic) for delivery in deliveries] == [(1, orders)] * 2
    assert [letter["message"]["message_id"] for letter in letters(wire, consumer)["results"]] == [dead[1], dead[3]]


def test_a_dead_letter_is_redriven_once(wire: Wire, consumer: Consumer, orders: str, dead: list[str]) -> None:
    redrive(wire, consumer, message_ids=[dead[1]])

    assert redrive(wire, consumer, message_ids=[dead[1]]) == [unknown(consumer, dead[1])]
    assert bodies(received_until_empty(consumer, orders)) == [b"order 1"]


def test_a_redrive_to_the_origin_reaches_no_other_group_of_the_topic(
    broker: RunningBroker, wire: Wire, consumer: Consumer, orders: str, dead: list[str]
) -> None:
    other = Consumer(broker.client(), characters.name("mail-service"))
    other.ack(received_until_empty(other, orders))

    assert len(redrive(wire, consumer, all=True)) == 4

    assert other.receive(orders) == []
    assert len(received_until_empty(consumer, orders)) == 4
    assert letters(wire, consumer) == {"results": [], "next": None}


def test_a_redrive_to_another_topic_is_for_whoever_reads_that(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, coupons: str, dead: list[str]
) -> None:
    results = redrive(wire, consumer, all=True, to_topic=coupons)

    assert results == [{"message_id": one, "status": 200, "topic": coupons} for one in dead]
    assert consumer.receive(orders) == []
    assert sorted(bodies(received_until_empty(consumer, coupons))) == [b"order %d" % number for number in range(4)]


@pytest.mark.one_cell(because="it reads the queue of the control's cell", control=True)
def test_a_dead_letter_tells_where_it_comes_from_however_it_is_read(
    broker: RunningBroker, wire: Wire, consumer: Consumer, orders: str, dead: list[str]
) -> None:
    topic = f"%DLQ%{consumer.group}"
    expected = {"RETRY_TOPIC": orders, "ORIGIN_MESSAGE_ID": dead[0], "RECONSUME_TIME": "0"}

    listed = letters(wire, consumer)["results"][0]["message"]
    [pulled] = wire.get(f"/v1/topics/%25DLQ%25{consumer.group}/queues/0/messages?max=1&cell=c0").document["messages"]
    [received] = Consumer(broker.client(), characters.name("readers")).receive(topic, max_messages=1)

    assert listed["properties"] == pulled["message"]["properties"] == received.message.properties == expected
    assert listed["topic"] == pulled["message"]["topic"] == received.message.topic == orders


def test_a_group_that_reads_dead_letters_has_all_its_retries_before_it(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    at_once = {"kind": "table", "delay_seconds": [0]}
    readers = Consumer(broker.client(), characters.name("readers"))
    for group in (consumer.group, readers.group):
        Admin(broker.client()).create_consumer_group(group, max_reconsume_times=1, retry_policy=at_once)
    producer.send(orders, b"order 1")
    for _ in range(2):
        consumer.nack(eventually(partial(consumer.receive, orders)))

    attempts = []
    for _ in range(2):
        [delivery] = eventually(partial(readers.receive, f"%DLQ%{consumer.group}"))
        attempts.append((delivery.delivery_attempt, delivery.message.properties["RECONSUME_TIME"]))
        readers.nack([delivery])

    assert attempts == [(1, "1"), (2, "1")]
    assert bodies(eventually(partial(Consumer(broker.client(), "any").receive, f"%DLQ%{readers.group}"))) == [
        b"order 1"
    ]


def test_a_redriven_message_that_fails_again_is_a_dead_letter_again(
    wire: Wire, consumer: Consumer, orders: str, dead: list[str]
) -> None:
    for _ in range(2):
        redrive(wire, consumer, message_ids=[dead[0]])
        consumer.nack(consumer.receive(orders))

    assert [letter["message"]["message_id"] for letter in letters(wire, consumer)["results"]] == [*dead[1:], dead[0]]


@pytest.mark.one_cell(because="a dead letter goes to topics of its own cell only", control=True)
def test_a_dead_letter_of_a_deleted_topic_goes_to_another_one_only(
    wire: Wire, consumer: Consumer, orders: str, coupons: str, dead: list[str]
) -> None:
    assert wire.call("DELETE", f"/v1/topics/{orders}").status == 204

    refused = redrive(wire, consumer, all=True)

    sentence = f"The topic of message {dead[0]} was deleted: give to_topic."
    assert refused[0] == {**problem(404, "topic_not_exist", sentence), "message_id": dead[0]}
    assert [one["message_id"] for one in redrive(wire, consumer, message_ids=dead, to_topic=coupons)] == dead
    assert len(consumer.receive(coupons)) == 4


def test_thousands_of_dead_letters_are_redriven_at_once(
    broker: RunningBroker, wire: Wire, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    for _ in range(3):
        wire.bulk(*({"op": "send", "topic": orders, "body": "order", "queue_id": 0} for _ in range(500)))
    while deliveries := consumer.receive(orders):
        consumer.nack(deliveries)

    results = redrive(wire, consumer, all=True)

    assert (len(results), {result["status"] for result in results}) == (1500, {200})
    assert len({delivery.message.message_id for delivery in received_until_empty(consumer, orders)}) == 1500
    assert letters(wire, consumer)["results"] == []


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({}, 422, "message_illegal"),
        ({"all": True, "message_ids": [UNKNOWN]}, 422, "message_illegal"),
        ({"message_ids": []}, 422, "message_illegal"),
        ({"message_ids": [UNKNOWN] * 1001}, 422, "message_illegal"),
        ({"message_ids": ["order 1"]}, 422, "message_illegal"),
        ({"all": True, "to_topic": "%RETRY%x"}, 403, "topic_forbidden"),
        ({"all": True, "to_topic": "no topic"}, 422, "topic_illegal"),
    ],
)
def test_a_redrive_that_cannot_be_done_leaves_every_letter_where_it_is(
    wire: Wire, consumer: Consumer, dead: list[str], asked: Document, status: int, code: str
) -> None:
    answer = wire.post(f"/v1/dead-letters/{consumer.group}/redrive", asked)

    assert (answer.status, answer.problem["code"]) == (status, code)
    assert len(letters(wire, consumer)["results"]) == 4
