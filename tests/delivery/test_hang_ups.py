"""Hang-ups: a consumer that goes away before its answer is written takes nothing with it."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker

CONNECTIONS = 40
# Of one megabyte each: more than a connection's buffers hold.
LARGE_MESSAGES = 14
# Longer than any test may take: what is hidden for so long is lost to it.
HIDDEN_SECONDS = 3600


@contextmanager
def takes_held_up(database_url: str) -> Iterator[None]:
    """Lets no receive hand anything out meanwhile."""
    with psycopg.connect(database_url) as connection:
        connection.execute("LOCK TABLE receipt, bundle IN SHARE MODE")
        yield


def takes_under_way(database_url: str) -> int:
    """Processes whose receives are held up."""
    waiting = (
        "SELECT count(DISTINCT l.pid) FROM pg_locks AS l "
        "WHERE l.relation IN ('receipt'::regclass, 'bundle'::regclass) "
        "AND l.mode = 'RowExclusiveLock' AND NOT l.granted"
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        row = connection.execute(waiting.encode()).fetchone()
    assert row is not None
    return int(row[0])


def asks(broker: RunningBroker, web: int, group: str, topic: str, max_messages: int = 1) -> socket.socket:
    """A connection over which a receive was sent, and whose answer is not read."""
    place = urlsplit(broker.urls[web])
    connection = socket.socket()
    # Too small for a large answer: most of it stays in the broker.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((place.hostname, place.port))
    asked = {"topic": topic, "max_messages": max_messages, "wait_seconds": 20, "invisible_seconds": HIDDEN_SECONDS}
    body = json.dumps(asked).encode()
    head = (
        f"POST /v1/consumer-groups/{group}/receive HTTP/1.1\r\nHost: {place.netloc}\r\n"
        f"Authorization: Bearer {API_KEY}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    return connection


@pytest.mark.parametrize("ordered", [False, True])
def test_what_was_taken_for_consumers_that_hung_up_is_received_by_others_at_once(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str, ordered: bool
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, ordered=ordered)
    sent = [f"order {number}".encode() for number in range(CONNECTIONS)]
    for body in sent:
        producer.send(orders, body)

    database_url = broker.database_of(orders)
    with takes_held_up(database_url):
        connections = [asks(broker, number % 2, consumer.group, orders) for number in range(CONNECTIONS)]
        eventually(lambda: takes_under_way(database_url) > 0)
        for connection in connections:
            with closing(connection):
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(1) == b""

    received: list[bytes] = []
    while len(received) < CONNECTIONS:
        batch = consumer.receive(orders, wait_seconds=20)
        assert batch, f"{CONNECTIONS - len(received)} messages are hidden"
        assert {delivery.delivery_attempt for delivery in batch} == {1}
        consumer.ack(batch)
        received += bodies(batch)
    assert sorted(received) == sorted(sent)


def test_what_a_consumer_left_unread_of_a_large_answer_is_received_by_others_at_once(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    """It has half an object, which is no JSON: it received no message of it."""
    sent = [b"%d" % number + b"x" * 1_000_000 for number in range(LARGE_MESSAGES)]
    for body in sent:
        producer.send(orders, body)
    Admin(broker.client()).create_consumer_group(consumer.group)

    with closing(asks(broker, 0, consumer.group, orders, LARGE_MESSAGES)) as connection:
        assert b"200" in connection.recv(64)

    received: list[bytes] = []
    while len(received) < LARGE_MESSAGES:
        batch = consumer.receive(orders, wait_seconds=20)
        assert batch, f"{LARGE_MESSAGES - len(received)} messages are hidden"
        assert {delivery.delivery_attempt for delivery in batch} == {1}
        consumer.ack(batch)
        received += bodies(batch)
    assert sorted(received) == sorted(sent)
