"""The rows that `./mq bench grown` fills a broker with are those of a grown one: the broker goes on from them."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from bench import grown
from bench.report import Sizes
from tests.broker import databases
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

SIZES = Sizes(messages=4003, halves=500, topics=20, groups=5)
PENDING = "SELECT transaction_id FROM half_message ORDER BY log_offset LIMIT 1"
ENDED = "SELECT transaction_id FROM operation ORDER BY log_offset DESC LIMIT 1"


@pytest.fixture(scope="module")
def full(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker on a database that was filled."""
    with databases.fresh() as database_url:
        redis_url = broker.environment["REDIS_URL"]
        running = RunningBroker(tmp_path_factory.mktemp("full"), database_url, redis_url, tasks=False)
        running.prepare()
        grown.fill(database_url, SIZES)
        with running:
            yield running


@pytest.fixture
def wire(full: RunningBroker) -> Wire:
    return full.wire()


def one(full: RunningBroker, query: str) -> uuid.UUID:
    """The only value of a query."""
    with psycopg.connect(full.database_url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    found: uuid.UUID = row[0]
    return found


def pulled(wire: Wire, topic: str, queue_id: int) -> Document:
    """All that a queue holds, and its bounds."""
    document: Document = wire.get(f"/v1/topics/{topic}/queues/{queue_id}/messages?offset=0&max=1000").document
    return document


def test_offsets_are_dense_and_the_next_send_goes_on_from_them(wire: Wire) -> None:
    before = pulled(wire, "topic-0003", 1)
    sent = wire.post("/v1/messages", {"topic": "topic-0003", "queue_id": 1, "body": "next"})

    count = len(before["messages"])
    assert count >= SIZES.messages // SIZES.topics // 4
    assert [entry["queue_offset"] for entry in before["messages"]] == list(range(count))
    assert (before["max_offset"], sent.document["queue_offset"]) == (count, count)
    assert sent.document["commit_log_offset"] >= SIZES.messages + SIZES.halves


def test_a_pending_transaction_is_committed_and_visible(full: RunningBroker, wire: Wire) -> None:
    transaction_id = one(full, PENDING)
    group = wire.get(f"/v1/transactions/{transaction_id}").document["producer_group"]

    ended = wire.post(f"/v1/transactions/{transaction_id}/end", {"producer_group": group, "state": "COMMIT"})

    assert (ended.status, ended.document["state"]) == (200, "COMMITTED")
    [message] = ended.document["messages"]
    trace = wire.get(f"/v1/messages/{message['message_id']}").document
    assert trace["message"]["transaction_id"] == str(transaction_id)


def test_an_ended_transaction_is_answered_again_with_its_offset(full: RunningBroker, wire: Wire) -> None:
    transaction_id = one(full, ENDED)
    group = wire.get(f"/v1/transactions/{transaction_id}").document["producer_group"]
    end = {"producer_group": group, "state": "COMMIT"}

    [message] = wire.post(f"/v1/transactions/{transaction_id}/end", end).document["messages"]

    entries = wire.get(f"/v1/messages/{message['message_id']}").document
    assert entries["message"]["transaction_id"] == str(transaction_id)
    assert message["queue_offset"] is not None


def test_a_group_has_read_its_ten_topics_and_receives_what_comes_now(wire: Wire) -> None:
    receive = {"topic": "topic-0005", "max_messages": 32}
    before = wire.post("/v1/consumer-groups/group-0001/receive", receive).document["messages"]
    sent = wire.post("/v1/messages", {"topic": "topic-0005", "body": "next"}).document

    received = wire.post("/v1/consumer-groups/group-0001/receive", receive).document["messages"]

    assert before == []
    assert [entry["queue_offset"] for entry in received] == [sent["queue_offset"]]
