"""Polls that hang up: a check that was handed out to a producer which had gone was not asked, and does not count."""

import contextlib
import socket
from collections.abc import Iterator
from functools import partial

import psycopg
from mqbroker_client import Producer

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import told
from tests.broker.wire import Document, Wire

HANDOUTS_UNDER_WAY = (
    "SELECT count(*) FROM pg_locks AS l WHERE l.relation = 'check_attempt'::regclass AND NOT l.granted "
    "AND l.mode = 'RowExclusiveLock'"
)


@contextlib.contextmanager
def handouts_held_up(database_url: str) -> Iterator[None]:
    """Lets no hand-out end meanwhile: each has claimed its transactions, and waits to note its attempts."""
    with psycopg.connect(database_url) as connection:
        connection.execute("LOCK TABLE check_attempt IN SHARE MODE")
        yield


def handouts_under_way(database_url: str) -> int:
    """Hand-outs that are held up."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        row = connection.execute(HANDOUTS_UNDER_WAY).fetchone()
    assert row is not None
    return int(row[0])


def checks(wire: Wire, transaction_id: str) -> list[Document]:
    """The attempts to check a transaction, as its history has them."""
    return [event for event in told(wire, transaction_id)["history"] if event["event"] == "check"]


def test_a_check_that_is_handed_out_to_a_producer_that_has_hung_up_does_not_count(
    broker: RunningBroker, wire: Wire, producer: Producer, orders: str
) -> None:
    transaction_id = str(producer.begin(orders, b"order 1", check_immunity_seconds=3600).transaction_id)
    poll = f"/v1/producer-groups/{producer.group}/checks/receive"
    assert wire.post(f"/v1/transactions/{transaction_id}/check", {}).status == 202

    database_url = broker.database_of(orders)
    with handouts_held_up(database_url):
        waiting = wire.ask("POST", poll, b'{"wait_seconds": 20}')
        eventually(lambda: handouts_under_way(database_url) > 0)
        with contextlib.closing(waiting.connection) as connection:
            connection.sock.shutdown(socket.SHUT_WR)

    noted = eventually(lambda: found if len(found := checks(wire, transaction_id)) > 1 else None)
    assert [event["counted"] for event in noted] == [True, False]
    assert (
        noted[1]["reason"]
        == "The polling producer hung up before its answer: the check that was handed out does not count."
    )
    assert told(wire, transaction_id)["check_times"] == 0
    [handed_out] = eventually(partial(handed, wire, poll))
    assert (handed_out["transaction_id"], handed_out["check_times"]) == (transaction_id, 1)


def handed(wire: Wire, poll: str) -> list[Document]:
    """What a poll is handed."""
    found: list[Document] = wire.post(poll, {}).document["transactions"]
    return found
