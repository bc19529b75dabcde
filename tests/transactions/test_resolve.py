"""Resolve: an operator decides a transaction with a reason, under the rules of an end."""

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.tellings import told
from tests.broker.wire import Wire, problem

COMMIT = {"state": "COMMIT", "reason": "the order is paid"}
ROLLBACK = {"state": "ROLLBACK", "reason": "the order was cancelled"}
NOBODYS = "00000000-0000-7000-8000-000000000000"


def test_an_operator_decides_a_pending_transaction_once(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    transaction = producer.begin(orders, b"order 1")
    path = f"/v1/transactions/{transaction.transaction_id}/resolve"

    committed, again, opposite = (wire.post(path, given) for given in (COMMIT, COMMIT, ROLLBACK))

    assert (committed.status, committed.document["state"]) == (200, "COMMITTED")
    assert (again.status, again.document) == (200, committed.document)
    assert opposite.problem == problem(
        409,
        "transaction_ended",
        f"Transaction {transaction.transaction_id} is already COMMITTED, decided by operator: this ROLLBACK "
        "comes too late.",
    )
    end = told(wire, transaction.transaction_id)["history"][-1]
    assert (end["state"], end["by"], end["remark"]) == ("COMMIT", "operator", "the order is paid")
    assert bodies(consumer.receive(orders)) == [b"order 1"]


def test_an_operators_decision_is_a_producers_too(wire: Wire, producer: Producer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")
    wire.post(f"/v1/transactions/{transaction.transaction_id}/resolve", ROLLBACK)
    end = {"producer_group": producer.group, "state": "ROLLBACK"}

    answer = wire.post(f"/v1/transactions/{transaction.transaction_id}/end", end)

    assert (answer.status, answer.document["state"]) == (200, "ROLLED_BACK")


def test_what_cannot_be_resolved_is_refused(wire: Wire, producer: Producer, orders: str) -> None:
    transaction_id = producer.begin(orders, b"order 1").transaction_id
    path = f"/v1/transactions/{transaction_id}/resolve"
    key = wire.post("/v1/api-keys", {"name": characters.name("key"), "scopes": ["produce:*"]}).document["key"]

    assert wire.post(f"/v1/transactions/{NOBODYS}/resolve", COMMIT).problem["code"] == "transaction_not_found"
    assert wire.post(path, {**COMMIT, "reason": " "}).problem["code"] == "message_illegal"
    assert Wire(wire.url, key).post(path, COMMIT).problem["code"] == "no_permission"
    assert told(wire, transaction_id)["state"] == "PREPARED"


@pytest.mark.parametrize("ended", ["by nobody", "by its producer", "by an operator"])
def test_a_transaction_that_was_never_discarded_is_not_among_the_discarded(
    wire: Wire, producer: Producer, orders: str, ended: str
) -> None:
    transaction = producer.begin(orders, b"order 1")
    if ended == "by its producer":
        transaction.commit()
    if ended == "by an operator":
        wire.post(f"/v1/transactions/{transaction.transaction_id}/resolve", COMMIT)

    path = f"/v1/discarded/{transaction.transaction_id}"
    answers = [
        wire.post(f"{path}/resolve", COMMIT),
        wire.post(f"{path}/resolve", ROLLBACK),
        wire.post(f"{path}/resume", {}),
    ]

    refused = problem(
        404,
        "transaction_not_found",
        f"There is no discarded transaction {transaction.transaction_id}: "
        f"GET /v1/transactions/{transaction.transaction_id} shows its state.",
    )
    assert [answer.problem for answer in answers] == [refused] * 3
