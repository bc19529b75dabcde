"""The console over three cells: its pages show what lies in all of them, and name one that is away."""

import json
import uuid
from collections.abc import Sequence
from functools import partial

import pytest
from mqbroker_client import Admin, Consumer, LocalTransactionState, Producer

from tests.broker.cells import Cells
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire
from tests.console.conftest import ada_at
from tests.console.operators import Operator

MISSING = "The cell c2 does not answer"
PAGES = (
    "",
    "transactions/pending/",
    "transactions/discarded/",
    "transactions/ended/",
    "delays/",
    "dead-letters/",
    "topics/",
    "consumer-groups/",
    "producer-groups/",
    "subscriptions/",
    "find/?q=key:none",
    "system/",
)


@pytest.fixture(scope="module")
def ada(broker: RunningBroker) -> Operator:
    """An admin who is signed in."""
    return ada_at(broker)


def firsts(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first cell of each row of a table."""
    return [row[0] for row in rows]


def test_transactions_and_messages_of_all_cells_are_on_one_page(
    ada: Operator, wire: Wire, producer: Producer, spread: Sequence[str]
) -> None:
    key = f"key-{producer.group}"
    begun: list[str] = []
    ended: list[str] = []
    for topic in spread:
        for ids in (begun, ended):
            message = {"topic": topic, "body": "x", "keys": [key]}
            half = wire.post("/v1/transactions", {"producer_group": producer.group, "messages": [message]})
            ids.append(half.document["transaction_id"])
        producer.end(uuid.UUID(ended[-1]), LocalTransactionState.COMMIT)
    asked = f"?producer_group={producer.group}"

    pending = ada.sees(f"transactions/pending/{asked}").table("pending")
    committed = ada.sees(f"transactions/ended/{asked}").table("ended")
    found = ada.sees(f"find/?q=key:{key}").table("messages")

    assert [(row[0], row[1]) for row in committed] == [(one, key) for one in reversed(ended)]
    assert {(row[0], row[1]) for row in pending} == {(one, key) for one in begun}
    assert [row[1] for row in found] == [topic for topic in reversed(spread) for _ in range(2)]
    assert {row[2] for row in found} == {"PREPARED", "COMMITTED"}
    assert "3 of 3 pending" in ada.sees(f"transactions/pending/{asked}").text


def test_a_message_and_a_transaction_are_shown_from_their_cell_whatever_lies_at_their_place_in_another(
    ada: Operator, wire: Wire, producer: Producer, spread: Sequence[str]
) -> None:
    for topic in spread:
        message = {"topic": topic, "body": f"body of {topic}"}
        half = wire.post("/v1/transactions", {"producer_group": producer.group, "messages": [message]}).document
        producer.end(uuid.UUID(half["transaction_id"]), LocalTransactionState.COMMIT)
        message_id = wire.get(f"/v1/transactions/{half['transaction_id']}").document["messages"][0]["message_id"]

        pages = [ada.sees(f"transactions/{half['transaction_id']}/"), ada.sees(f"messages/{message_id}/")]

        assert [page.status for page in pages] == [200, 200]
        assert [f"body of {topic}" in page.text for page in pages] == [True, True]


def test_delays_and_dead_letters_of_all_cells_are_counted_and_listed(
    ada: Operator, broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, spread: Sequence[str]
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    before = wire.get("/v1/timers").document["backlog"]
    sent = []
    for topic in spread:
        wire.post("/v1/messages", {"topic": topic, "body": "late", "delay_seconds": 3600})
        sent.append(str(producer.send(topic, topic.encode()).message_id))
        consumer.nack(consumer.receive(topic))

    timers = wire.get("/v1/timers").document
    groups = {row[0]: row[1] for row in ada.sees("dead-letters/").table("dead-letters")}
    letters = ada.sees(f"dead-letters/{consumer.group}/")

    assert (timers["backlog"], timers["missing"]) == (before + 3, [])
    assert groups[consumer.group] == "3"
    assert [message_id for message_id in reversed(sent) if message_id in letters.html] == sent[::-1]
    held = {row[0]: row for row in ada.sees(f"topics/?q={spread[2]}").table("topics")}
    assert "1" in held[spread[2]]


def test_each_page_names_a_cell_that_is_away(
    ada: Operator, cells: Cells, wire: Wire, producer: Producer, spread: Sequence[str]
) -> None:
    subscription = {"group": "named", "topic": spread[2], "url": "http://127.0.0.1:9/"}
    assert wire.call("PUT", "/v1/subscriptions/named", json.dumps(subscription).encode()).status < 300
    producer.begin(spread[2], b"half")
    with cells.away(2):
        away = {path: ada.sees(path) for path in PAGES}
        delays = wire.get("/v1/delay-levels").document["missing"]
    back = eventually(partial(_whole, ada), within_seconds=20)

    assert {path: page.status for path, page in away.items()} == dict.fromkeys(PAGES, 200)
    assert [path for path, page in away.items() if MISSING not in page.text] == []
    assert delays == ["c2"]
    assert back


def test_the_system_page_shows_the_database_of_each_cell(ada: Operator) -> None:
    control, other = ada.sees("system/"), ada.sees("system/?cell=c1")

    assert "of cell c0; others: c1 c2" in control.text
    assert "of cell c1; others: c0 c2" in other.text
    assert len(other.table("hot-tables")) == len(control.table("hot-tables")) > 0


def _whole(ada: Operator) -> bool:
    return all(MISSING not in ada.sees(path).text for path in PAGES)
