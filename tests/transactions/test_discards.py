"""Discards: a half message whose checks are used up is set aside, and only an operator decides it."""

from dataclasses import dataclass

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Producer, StoredMessage

from analytics.tables import ENTRIES
from tests.broker import characters
from tests.broker.characters import bodies, register
from tests.broker.endpoints import ProducerEndpoint, says
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import told
from tests.broker.wire import Document, Wire, problem

SET_ASIDE = "TRANS_CHECK_MAX_TIME_TOPIC"


@dataclass(frozen=True)
class Discarded:
    """Three transactions of one group that were asked about in vain."""

    topic: str
    group: str
    ids: list[str]
    endpoint: ProducerEndpoint


@pytest.fixture(scope="module")
def discarded(broker: RunningBroker) -> Discarded:
    """It takes all the checks there are to get there, so the tests of this module share it."""
    topic, group = characters.name("orders"), characters.name("order-service")
    half = {"op": "half", "topic": topic, "producer_group": group, "tags": "paid", "properties": {"region": "eu"}}
    with ProducerEndpoint() as endpoint:
        endpoint.replies(says(500))
        register(broker, group, endpoint.url, max_batch=10)
        begun = broker.wire().bulk(
            *({**half, "body": f"order {number}", "keys": [f"o-{number}"]} for number in range(3))
        )
        ids = [result["transaction_id"] for result in begun]
        eventually(lambda: {told(broker.wire(), transaction_id)["state"] for transaction_id in ids} == {"DISCARDED"})
    return Discarded(topic, group, ids, endpoint)


def test_a_half_message_is_discarded_after_the_last_check_that_is_allowed(wire: Wire, discarded: Discarded) -> None:
    document = told(wire, discarded.ids[0])

    prepared, *checks, discard = document["history"]
    assert (document["check_times"], document["next_check_at"]) == (3, None)
    assert [check["answer"] for check in checks] == ["UNKNOWN"] * 3
    assert discard == {
        "event": "discard",
        "at": discard["at"],
        "state": "DISCARD",
        "by": "limit",
        "remark": "no decision after 3 checks; The endpoint answered 500.",
    }
    assert len(discarded.endpoint.about(discarded.ids[0])) == 3
    assert prepared["at"] < checks[0]["at"] < discard["at"]


def test_a_discarded_message_is_not_delivered_but_kept_with_all_its_properties(
    consumer: Consumer, discarded: Discarded
) -> None:
    found = [message for message in everything(consumer, SET_ASIDE) if message.topic == discarded.topic]
    kept = {str(message.transaction_id): message for message in found}

    assert b"order 0" not in bodies(consumer.receive(discarded.topic))
    assert [(kept[id_].body, kept[id_].tags, list(kept[id_].keys)) for id_ in discarded.ids] == [
        (b"order 0", "paid", ["o-0"]),
        (b"order 1", "paid", ["o-1"]),
        (b"order 2", "paid", ["o-2"]),
    ]
    assert [dict(message.properties) for message in found] == [
        {"region": "eu", "PGROUP": discarded.group, "TRANSACTION_CHECK_TIMES": "3"}
    ] * 3
    assert {message.reconsume_times for message in found} == {0}
    assert len(found) == len(kept) == 3


def test_a_consumer_of_the_discarded_learns_the_topic_that_each_was_sent_to(wire: Wire, discarded: Discarded) -> None:
    archive = characters.name("archive")
    path = f"/v1/consumer-groups/{archive}/receive"
    received = []
    # Behind those of other tests.
    while page := wire.post(path, {"topic": SET_ASIDE, "max_messages": 32}).document["messages"]:
        received += page

    ours = [entry for entry in received if entry["message"].get("transaction_id") in discarded.ids]
    assert {entry["delivery_attempt"] for entry in ours} == {1}
    assert [entry["message"]["properties"] for entry in ours] == [
        {"region": "eu", "PGROUP": discarded.group, "TRANSACTION_CHECK_TIMES": "3"}
    ] * 3
    trace = wire.get(f"/v1/messages/{ours[0]['message']['message_id']}/trace").document
    attempts = {event["delivery_attempt"] for event in trace["events"] if event.get("group") == archive}
    assert attempts == {1}
    topics = {entry["message"].get("transaction_id"): entry["message"]["topic"] for entry in received}
    assert {topics[transaction_id] for transaction_id in discarded.ids} == {discarded.topic}


def test_the_discarded_are_listed_by_group_and_by_topic(wire: Wire, producer: Producer, discarded: Discarded) -> None:
    other = characters.name("returns")
    producer.begin(other, b"half").rollback()

    def listed(query: str) -> list[str]:
        return [one["transaction_id"] for one in wire.get(f"/v1/discarded?{query}").document["results"]]

    group, topic = f"producer_group={discarded.group}", f"topic={discarded.topic}"
    assert [discarded.ids[0] in listed(query) for query in (group, topic, f"{group}&{topic}")] == [True] * 3
    assert listed(f"producer_group={producer.group}") == []
    assert listed(f"topic={other}") == []


@pytest.mark.one_cell(because="it reads the discards' topic without naming a cell")
@pytest.mark.parametrize("narrowed", ["", "&key=o-0"], ids=["list", "key"])
def test_the_checks_of_a_discarded_message_are_not_its_retries(wire: Wire, discarded: Discarded, narrowed: str) -> None:
    found = wire.get(f"/v1/messages?topic={SET_ASIDE}&limit=100{narrowed}").document["results"]
    pulled: list[Document] = []
    queue, offset = f"/v1/topics/{SET_ASIDE}/queues/0/messages", 0
    # Tests of other files share the broker, and discard more than a page.
    while page := (read := wire.get(f"{queue}?offset={offset}&max=100").document)["messages"]:
        pulled, offset = [*pulled, *page], read["next_offset"]

    for entries in (found, pulled):
        [message] = [one["message"] for one in entries if one["message"].get("transaction_id") == discarded.ids[0]]
        assert message["reconsume_times"] == 0
        assert message["properties"]["TRANSACTION_CHECK_TIMES"] == "3"
        assert message["properties"]["PGROUP"] == discarded.group


def test_the_export_counts_no_checks_as_retries(broker: RunningBroker, discarded: Discarded) -> None:
    with psycopg.connect(broker.database_of(discarded.topic)) as connection:
        exported = connection.execute(f"SELECT * FROM ({ENTRIES.statement.text}) AS e WHERE e.topic = '{SET_ASIDE}'")
        columns = [column.name for column in exported.description or ()]
        counts = {dict(zip(columns, row, strict=True))["reconsume_times"] for row in exported}

    assert counts == {0}


def test_discarded_transactions_take_no_place_of_their_group(broker: RunningBroker, discarded: Discarded) -> None:
    Admin(broker.client()).create_producer_group(discarded.group, max_undecided=1)

    Producer(broker.client(), discarded.group).begin(discarded.topic, b"order 4").rollback()


@pytest.mark.parametrize("state", ["COMMIT", "ROLLBACK", "UNKNOWN"])
def test_a_producer_does_not_end_a_discarded_transaction(wire: Wire, discarded: Discarded, state: str) -> None:
    transaction_id = discarded.ids[0]

    answer = wire.post(f"/v1/transactions/{transaction_id}/end", {"producer_group": discarded.group, "state": state})

    assert answer.problem == problem(
        409,
        "transaction_discarded",
        f"Transaction {transaction_id} was discarded after 3 checks: "
        "an operator can resume or resolve it at /v1/discarded.",
    )


def test_an_operator_decides_a_discarded_transaction_once(wire: Wire, consumer: Consumer, discarded: Discarded) -> None:
    path = f"/v1/discarded/{discarded.ids[1]}/resolve"
    as_any = f"/v1/transactions/{discarded.ids[1]}/resolve"

    committed = wire.post(as_any, {"state": "COMMIT", "reason": "the order is paid"})
    again = wire.post(path, {"state": "COMMIT", "reason": "the order is paid"})
    opposite = wire.post(path, {"state": "ROLLBACK", "reason": "a mistake"})

    assert (committed.status, committed.document["state"]) == (200, "COMMITTED")
    assert (again.status, again.document) == (200, committed.document)
    assert (opposite.status, opposite.problem["code"]) == (409, "transaction_ended")
    end = told(wire, discarded.ids[1])["history"][-1]
    assert (end["state"], end["by"], end["remark"]) == ("COMMIT", "operator", "the order is paid")
    assert bodies(consumer.receive(discarded.topic)) == [b"order 1"]


def test_a_resumed_transaction_is_checked_again_from_the_first_time(
    wire: Wire, producer: Producer, discarded: Discarded
) -> None:
    transaction_id = discarded.ids[2]

    resumed = wire.post(f"/v1/discarded/{transaction_id}/resume", {"reason": "the order service is back"})
    document = told(wire, transaction_id)
    end = wire.post(f"/v1/transactions/{transaction_id}/end", {"producer_group": discarded.group, "state": "ROLLBACK"})

    assert resumed.status == 200
    assert (document["state"], document["check_times"]) == ("PREPARED", 0)
    assert document["history"][-1]["event"] == "resume"
    assert (end.status, end.document["state"]) == (200, "ROLLED_BACK")
    assert wire.post(f"/v1/discarded/{transaction_id}/resume", {}).problem == problem(
        409,
        "transaction_ended",
        f"Transaction {transaction_id} is ROLLED_BACK already: there is nothing to resume.",
    )


def everything(consumer: Consumer, topic: str) -> list[StoredMessage]:
    """All messages of a topic."""
    found: list[StoredMessage] = []
    while deliveries := consumer.receive(topic):
        consumer.ack(deliveries)
        found += [delivery.message for delivery in deliveries]
    return found
