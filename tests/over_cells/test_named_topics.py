"""Ends over three cells: one that names the topic of its transaction is a matter of that topic's cell alone."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from mqbroker_client import Broker, CheckPoller, LocalTransactionState, Producer
from mqbroker_client.core import errors
from mqbroker_client.core.calls import producer as calls

from tests.broker import characters
from tests.broker.cells import Cells
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import told
from tests.broker.wire import Answer, Wire


def _end(wire: Wire, group: str, transaction_id: uuid.UUID, **more: str) -> Answer:
    return wire.post(f"/v1/transactions/{transaction_id}/end", {"producer_group": group, "state": "COMMIT", **more})


def test_an_end_that_names_its_topic_asks_no_other_cell(
    broker: RunningBroker, wire: Wire, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    begun = producer.begin(spread[1], b"half")
    unknown = uuid.uuid4()

    with cells.away(2):
        eventually(lambda: _end(wire, producer.group, unknown).document["code"] == "cell_away")
        named = _end(wire, producer.group, unknown, topic=spread[1])
        within = {"op": "end", "transaction_id": str(unknown), "producer_group": producer.group, "state": "COMMIT"}
        [in_bulk] = wire.bulk({**within, "topic": spread[1]})
        ended = _end(broker.wire(1), producer.group, begun.transaction_id, topic=spread[1])

    assert (named.status, named.problem["code"]) == (404, "transaction_not_found")
    assert (in_bulk["status"], in_bulk["code"]) == (404, "transaction_not_found")
    assert (ended.status, ended.document["state"]) == (200, "COMMITTED")
    eventually(lambda: wire.post("/v1/messages", {"topic": spread[2], "body": "x"}).status == 201, within_seconds=20)


@pytest.mark.parametrize("web", [0, 1])
def test_an_end_with_a_topic_in_another_cell_or_with_none_that_there_is_decides_nothing(
    broker: RunningBroker, producer: Producer, spread: Sequence[str], web: int
) -> None:
    begun = producer.begin(spread[1], b"half")
    wire = broker.wire(web)

    elsewhere = _end(wire, producer.group, begun.transaction_id, topic=spread[2])
    nowhere = _end(wire, producer.group, begun.transaction_id, topic=characters.name("none"))
    illegal = _end(wire, producer.group, begun.transaction_id, topic="no name")
    state = told(wire, begun.transaction_id)["state"]
    right = _end(wire, producer.group, begun.transaction_id, topic=spread[1])

    assert (elsewhere.status, elsewhere.problem["code"]) == (404, "transaction_not_found")
    assert (nowhere.status, nowhere.problem["code"]) == (404, "topic_not_exist")
    assert (illegal.status, illegal.problem["code"]) == (422, "topic_illegal")
    assert state == "PREPARED"
    assert right.document["state"] == "COMMITTED"


def test_the_sdk_names_the_topic_with_its_ends(
    broker: RunningBroker, wire: Wire, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    begun = [producer.begin(topic, b"half") for topic in spread]

    with cells.away(2):
        eventually(lambda: _end(wire, producer.group, uuid.uuid4()).document["code"] == "cell_away")
        with pytest.raises(errors.TransactionNotFound):
            replace(begun[1], transaction_id=uuid.uuid4()).commit()

    assert [one.cell for one in begun] == ["c0", "c1", "c2"]
    eventually(lambda: wire.post("/v1/messages", {"topic": spread[2], "body": "x"}).status == 201, within_seconds=20)


def test_the_sdk_names_the_topic_with_its_answers_to_checks(
    broker: RunningBroker, producer: Producer, spread: Sequence[str]
) -> None:
    begun = {producer.begin(topic, b"forgotten").transaction_id: topic for topic in spread}
    client: Broker = broker.client()
    named: dict[uuid.UUID, str | None] = {}

    while named.keys() < begun.keys():
        halves = client.do(calls.receive_checks(producer.group, 1, 10))
        named |= {half.transaction_id: half.topic_of_end for half in halves}
    again = {producer.begin(topic, b"forgotten").transaction_id for topic in spread}
    poller = CheckPoller(producer, lambda half: LocalTransactionState.COMMIT)
    poller.start()
    for one in again:
        eventually(partial(_is_committed, broker.wire(), one), within_seconds=20)
    poller.stop()

    assert named == begun


def _is_committed(wire: Wire, transaction_id: uuid.UUID) -> bool:
    return bool(told(wire, transaction_id)["state"] == "COMMITTED")
