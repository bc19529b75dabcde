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
# Longer than any test may take: what is hidden for so long is lost to it.
HIDDEN_SECONDS = 3600


@contextmanager
def takes_held_up(broker: RunningBroker) -> Iterator[None]:
    """Lets no receive hand anything out meanwhile."""
    with psycopg.connect(broker.database_url) as connection:
        connection.execute("LOCK TABLE receipt IN SHARE MODE")
        yield


def takes_under_way(broker: RunningBroker) -> int:
    """Processes whose receives are held up."""
    waiting = (
        "SELECT count(DISTINCT l.pid) FROM pg_locks AS l "
        "WHERE l.relation = 'receipt'::regclass AND l.mode = 'RowExclusiveLock' AND NOT l.granted"
    )
    with psycopg.connect(broker.database_url, autocommit=True) as connection:
        row = connection.execute(waiting.encode()).fetchone()
    assert row is not None
    return int(row[0])


def asks(broker: RunningBroker, web: int, group: str, topic: str) -> socket.socket:
    """A connection over which a receive was sent, and whose answer is not read."""
    place = urlsplit(broker.urls[web])
    connection = socket.create_connection((place.hostname, place.port))
    asked = {"topic": topic, "max_messages": 1, "wait_seconds": 20, "invisible_seconds": HIDDEN_SECONDS}
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

    with takes_held_up(broker):
        connections = [asks(broker, number % 2, consumer.group, orders) for number in range(CONNECTIONS)]
        eventually(lambda: takes_under_way(broker) > 0)
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
