"""A waiting receive is handed its message by the transaction that stores it, and reads nothing where nothing is."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Message, Producer

from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.delivery.test_long_polls import LongPoll, wire_of

# The transactions that entered a message and that hid it from a group.
WROTE = """
    SELECT DISTINCT c.xmin::text, coalesce(b.xmin, r.xmin)::text FROM consume_queue AS c
    INNER JOIN topic AS t ON c.topic_id = t.id
    LEFT JOIN bundle AS b
        ON
            c.topic_id = b.topic_id AND c.queue_id = b.queue_id AND c.queue_offset / 64 = b.first_offset / 64
            AND (b.unsettled >> (c.queue_offset & 63)::integer) & 1 = 1
    LEFT JOIN receipt AS r
        ON c.topic_id = r.topic_id AND c.queue_id = r.queue_id AND c.queue_offset = r.queue_offset
    WHERE t.name = %s AND c.queue_offset > 0
"""
# An entry that no process is notified of: the message of the newest one once more.
ENTER_UNNOTICED = """
    INSERT INTO consume_queue (
        segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at
    )
    SELECT
        c.segment_id, c.topic_id, c.queue_id, c.queue_offset + 1, c.log_segment, c.log_offset, c.tags_code, 0, now()
    FROM consume_queue AS c
    INNER JOIN topic AS t ON c.topic_id = t.id
    WHERE t.name = %s
    ORDER BY c.queue_offset DESC
    LIMIT 1
"""
HOSTILE = Message(
    "",
    b"\xff\x00 raw",
    keys=["a", "b"],
    tags="paid",
    properties={"region": "eu", "ü": "\u2028"},
    queue_id=0,
    traceparent=f"00-{7:032x}-{8:016x}-01",
)


@pytest.fixture
def known(producer: Producer, consumer: Consumer, orders: str) -> str:
    """A topic whose queue 0 has an entry in the open segment: what comes next needs no second look."""
    Admin(producer.broker).create_topic(orders, queues=1)
    producer.send(orders, b"the first", queue_id=0)
    consumer.ack(consumer.receive(orders))
    return orders


def sent(producer: Producer, topic: str) -> None:
    producer.send(topic, b"order", queue_id=0)


def sent_in_a_batch(producer: Producer, topic: str) -> None:
    producer.send_batch(topic, [Message(topic, b"order"), Message(topic, b"order 2")])


def committed(producer: Producer, topic: str) -> None:
    producer.begin(topic, b"order", queue_id=0).commit()


@pytest.mark.parametrize("store", [sent, sent_in_a_batch, committed])
def test_a_message_is_handed_out_by_the_transaction_that_makes_it_visible(
    broker: RunningBroker, producer: Producer, consumer: Consumer, known: str, store: Callable[[Producer, str], None]
) -> None:
    poll = LongPoll.receive(consumer, known)
    store(producer, known)

    assert poll.bodies()[0] == "order"
    with psycopg.connect(broker.database_of(known)) as connection:
        entered, hidden = zip(*connection.execute(WROTE, [known]).fetchall(), strict=True)
    assert entered == hidden


def test_what_is_handed_out_so_is_what_is_stored(producer: Producer, consumer: Consumer, known: str) -> None:
    poll = LongPoll.receive(consumer, known)
    wire_of(consumer).post(
        "/v1/messages", HOSTILE.document() | {"topic": known, "born_at": "2026-03-29T02:30:00+02:00"}
    )

    [entry] = poll.request.answer().document["messages"]
    [pulled] = wire_of(consumer).get(f"/v1/topics/{known}/queues/0/messages?offset=1").document["messages"]
    assert entry["message"] == pulled["message"]
    assert entry["message"]["born_at"] == "2026-03-29T00:30:00.000000Z"


def test_each_of_several_messages_goes_to_a_waiting_receive_of_its_own(
    producer: Producer, consumer: Consumer, known: str
) -> None:
    asked = json.dumps({"topic": known, "wait_seconds": 20, "max_messages": 1}).encode()
    path = f"/v1/consumer-groups/{consumer.group}/receive"
    waiting = [wire_of(consumer).ask("POST", path, asked) for _ in range(3)]
    assert consumer.receive(known) == []

    producer.send_batch(known, [Message(known, body) for body in (b"1", b"2", b"3")])

    received = [entry for each in waiting for entry in each.answer().document["messages"]]
    assert sorted(entry["message"]["body"] for entry in received) == ["1", "2", "3"]


def test_groups_that_wait_are_each_handed_the_message(broker: RunningBroker, producer: Producer, known: str) -> None:
    groups = [Consumer(broker.client(), f"{known}-{number}") for number in range(12)]
    for group in groups:
        group.ack(group.receive(known))
    polls = [LongPoll.receive(group, known) for group in groups]

    producer.send(known, b"order", queue_id=0)

    assert [poll.bodies_at_once() for poll in polls] == [["order"]] * 12


def test_a_group_that_another_session_has_locked_holds_up_no_send(
    broker: RunningBroker, producer: Producer, consumer: Consumer, known: str
) -> None:
    poll = LongPoll.receive(consumer, known)
    with held(broker, consumer.group):
        assert producer.send(known, b"order", queue_id=0).queue_offset == 1

    assert poll.bodies() == ["order"]


@contextmanager
def held(broker: RunningBroker, group: str) -> Iterator[None]:
    """A session that has the row of a group locked."""
    with psycopg.connect(broker.database_url) as connection:
        connection.execute("SELECT FROM consumer_group WHERE name = %s FOR UPDATE", [group])
        yield


def test_where_nothing_is_a_receive_reads_at_the_end_of_its_time(
    broker: RunningBroker, consumer: Consumer, known: str
) -> None:
    """So it costs no read, and what no notice came of is received all the same, by a receive that would be empty."""

    def waited() -> bool:
        with psycopg.connect(broker.database_of(known)) as connection:
            connection.execute(ENTER_UNNOTICED, [known])
        began = time.monotonic()
        assert bodies(consumer.receive(known, wait_seconds=1)) == [b"the first"]
        return time.monotonic() - began > 0.9

    # A process that has just begun to listen reads first.
    eventually(waited)
