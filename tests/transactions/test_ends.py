"""Ends: the first decision wins, the same again is answered alike, the opposite is refused."""

from uuid import uuid4

import pytest
from mqbroker_client import Consumer, LocalTransactionState, Producer

from tests.broker import cells
from tests.broker.characters import bodies, name
from tests.broker.running import RunningBroker
from tests.broker.tellings import told
from tests.broker.wire import Answer, Document, Wire, problem

OPPOSITE = {"COMMIT": "ROLLBACK", "ROLLBACK": "COMMIT"}
STATE_AFTER = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}


@pytest.mark.parametrize("decision", ["COMMIT", "ROLLBACK"])
def test_the_same_decision_again_is_answered_the_same(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, decision: str
) -> None:
    transaction = producer.begin(orders, b"order 1", queue_id=1)

    first = end(wire, producer, transaction.transaction_id, decision)
    again = end(wire, producer, transaction.transaction_id, decision)

    offset = 0 if decision == "COMMIT" else None
    assert first.status == again.status == 200
    assert (
        first.document
        == again.document
        == {
            "transaction_id": str(transaction.transaction_id),
            "state": STATE_AFTER[decision],
            "messages": [{"message_id": str(transaction.message_id), "queue_id": 1, "queue_offset": offset}],
        }
    )
    assert bodies(consumer.receive(orders)) == ([b"order 1"] if decision == "COMMIT" else [])


@pytest.mark.parametrize(
    ("given", "state"), [("COMMIT_MESSAGE", "COMMITTED"), ("ROLLBACK_MESSAGE", "ROLLED_BACK"), ("UNKNOW", "PREPARED")]
)
def test_a_state_in_rocketmqs_spelling_is_taken_and_answered_in_ours(
    wire: Wire, producer: Producer, orders: str, given: str, state: str
) -> None:
    transaction_id = producer.begin(orders, b"order 1").transaction_id

    ended = end(wire, producer, transaction_id, given)

    assert (ended.status, ended.document["state"]) == (202 if given == "UNKNOW" else 200, state)


@pytest.mark.parametrize("decision", ["COMMIT", "ROLLBACK"])
def test_the_opposite_decision_is_refused(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, decision: str
) -> None:
    transaction_id = producer.begin(orders, b"order 1").transaction_id
    end(wire, producer, transaction_id, decision)

    opposite = end(wire, producer, transaction_id, OPPOSITE[decision])

    assert opposite.problem == problem(
        409,
        "transaction_ended",
        f"Transaction {transaction_id} is already {STATE_AFTER[decision]}, decided by producer: this "
        f"{OPPOSITE[decision]} comes too late.",
    )
    assert len(consumer.receive(orders)) == (decision == "COMMIT")


def test_only_over_several_cells_a_begin_names_its_cell_and_the_sdk_the_topic_that_any_end_may_have(
    wire: Wire, producer: Producer, orders: str
) -> None:
    begun = producer.begin(orders, b"order 1")
    begun_by_hand = wire.post("/v1/transactions", {"producer_group": producer.group, "topic": orders, "body": "x"})
    given = {"producer_group": producer.group, "state": "COMMIT", "topic": orders}

    ended = wire.post(f"/v1/transactions/{begun.transaction_id}/end", given)

    of_several = cells.CELLS > 1
    assert (begun.cell is not None, begun.topic_of_end) == (of_several, orders if of_several else None)
    assert ("cell" in begun_by_hand.document) == of_several
    assert (ended.status, ended.document["state"]) == (200, "COMMITTED")


def test_a_transaction_that_begins_at_one_web_process_ends_at_another(
    broker: RunningBroker, producer: Producer, distant_consumer: Consumer, orders: str
) -> None:
    transaction = producer.begin(orders, b"order 1")

    Producer(broker.client(web=1), producer.group).end(transaction.transaction_id, LocalTransactionState.COMMIT)

    assert bodies(distant_consumer.receive(orders)) == [b"order 1"]


def test_an_end_is_refused_by_the_first_rule_that_it_breaks(wire: Wire, producer: Producer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")
    end(wire, producer, transaction.transaction_id, "ROLLBACK")
    transaction_id, offset = transaction.transaction_id, transaction.commit_log_offset
    nowhere, stranger = uuid4(), name("stranger")
    producer.begin(orders, b"order 2")

    wrong: Document = {"producer_group": stranger, "state": "COMMIT", "commit_log_offset": offset + 1}
    unknown = wire.post(f"/v1/transactions/{nowhere}/end", wrong)
    of_a_stranger = wire.post(f"/v1/transactions/{transaction_id}/end", wrong)
    misplaced = wire.post(f"/v1/transactions/{transaction_id}/end", {**wrong, "producer_group": producer.group})
    ended = wire.post(
        f"/v1/transactions/{transaction_id}/end",
        {**wrong, "producer_group": producer.group, "commit_log_offset": offset},
    )

    assert unknown.problem == problem(
        404,
        "transaction_not_found",
        f"There is no transaction {nowhere}: it was never stored, or retention has deleted it. "
        "If its half message is still on the way, repeat the end after its answer.",
    )
    assert of_a_stranger.problem == problem(
        409,
        "producer_group_wrong",
        f"The producer group wrong: transaction {transaction_id} belongs to another group; name that one.",
    )
    assert misplaced.problem == problem(
        409,
        "commit_log_offset_wrong",
        f"The commit log offset wrong: transaction {transaction_id} is at {offset}.",
    )
    assert ended.problem == problem(
        409,
        "transaction_ended",
        f"Transaction {transaction_id} is already ROLLED_BACK, decided by producer: this COMMIT comes too late.",
    )


def test_an_end_that_is_wrong_ends_nothing(wire: Wire, producer: Producer, consumer: Consumer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")
    another_group = producer.begin(orders, b"order 2").producer.group + "-not"
    path = f"/v1/transactions/{transaction.transaction_id}/end"

    refused = [
        wire.post(path, {"producer_group": another_group, "state": "COMMIT"}),
        wire.post(path, {"producer_group": "\x00", "state": "COMMIT"}),
        wire.post(path, {"producer_group": producer.group, "state": "COMMIT", "commit_log_offset": -1}),
        wire.post(path, {"producer_group": producer.group, "state": "COMMIT", "commit_log_offset": 2**63}),
        wire.post(path, {"producer_group": producer.group, "state": "MAYBE"}),
        wire.post(path, {"state": "COMMIT"}),
    ]

    assert [answer.problem["code"] for answer in refused] == [
        "producer_group_wrong",
        "producer_group_wrong",
        "commit_log_offset_wrong",
        "message_illegal",
        "message_illegal",
        "message_illegal",
    ]
    assert wire.get(f"/v1/transactions/{transaction.transaction_id}").document["state"] == "PREPARED"
    assert consumer.receive(orders) == []


def test_unknown_changes_nothing_but_the_history(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    transaction = producer.begin(orders, b"order 1", check_immunity_seconds=60)
    before = told(wire, transaction.transaction_id)

    answer = end(wire, producer, transaction.transaction_id, "UNKNOWN", remark="the database\r\nis slow\x00\x1b[2J")

    after = told(wire, transaction.transaction_id)
    assert answer.status == 202
    assert answer.document["state"] == "PREPARED"
    event = after["history"].pop()
    assert event == {
        "event": "end",
        "at": event["at"],
        "state": "UNKNOWN",
        "by": "producer",
        "remark": "the database\nis slow\ufffd\ufffd[2J",
    }
    assert after == before
    assert consumer.receive(orders) == []
    assert transaction.commit().state == "COMMITTED"


def test_unknown_of_an_ended_transaction_tells_how_it_ended(wire: Wire, producer: Producer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")
    committed = end(wire, producer, transaction.transaction_id, "COMMIT")

    unknown = end(wire, producer, transaction.transaction_id, "UNKNOWN")

    assert (unknown.status, unknown.document) == (202, committed.document)


def test_an_end_may_name_the_offset_of_any_of_its_messages(wire: Wire, producer: Producer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")

    answer = end(wire, producer, transaction.transaction_id, "COMMIT", commit_log_offset=transaction.commit_log_offset)

    assert answer.status == 200


def test_an_end_from_a_check_says_so_in_the_history(wire: Wire, producer: Producer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")

    end(wire, producer, transaction.transaction_id, "COMMIT", from_transaction_check=True)

    assert told(wire, transaction.transaction_id)["history"][-1]["by"] == "check"


def test_the_operations_of_a_bulk_are_done_in_order_and_judged_each_on_its_own(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    first, second, nowhere = str(uuid4()), str(uuid4()), str(uuid4())
    group = {"producer_group": producer.group}
    half = {"op": "half", "topic": orders, **group}

    results = wire.bulk(
        {**half, "body": "order 1", "transaction_id": first},
        {"op": "end", "transaction_id": first, "state": "COMMIT", **group},
        {"op": "end", "transaction_id": first, "state": "ROLLBACK", **group},
        {**half, "body": "order 1", "transaction_id": first},
        {"op": "end", "transaction_id": nowhere, "state": "COMMIT", **group},
        {"op": "send", "topic": orders, "body": "order 2", "tags": "|"},
        {"op": "half", "topic": orders, "body": "order 3", "transaction_id": second, "tags": " ", **group},
        {"op": "end", "transaction_id": second, "state": "COMMIT", **group},
        {"op": "fly"},
        {"op": "send", "topic": orders, "body": "order 4"},
    )

    assert [result["status"] for result in results] == [201, 200, 409, 200, 404, 422, 422, 404, 422, 201]
    assert [result.get("state") for result in results[:4]] == ["PREPARED", "COMMITTED", None, "COMMITTED"]
    assert sorted(bodies(consumer.receive(orders))) == [b"order 1", b"order 4"]


def test_a_bulk_that_is_repeated_stores_nothing_again(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    ids = [str(uuid4()) for _ in range(40)]
    group = {"producer_group": producer.group}
    halves = [{"op": "half", "topic": orders, "body": id_, "transaction_id": id_, **group} for id_ in ids]
    ends = [{"op": "end", "transaction_id": id_, "state": "COMMIT", **group} for id_ in ids]
    sent = {"op": "send", "topic": orders, "body": "order 1", "message_id": str(uuid4())}

    first = wire.bulk(*halves, sent, *ends)
    again = wire.bulk(*halves, sent, *ends)

    assert [result["status"] for result in first] == [201] * 41 + [200] * 40
    assert [result["status"] for result in again] == [200] * 81
    assert again[41:] == first[41:]
    assert again[40] == first[40] | {"status": 200, "duplicate": True}
    received = [body for _ in range(3) for body in bodies(consumer.receive(orders))]
    assert sorted(received) == sorted([*(id_.encode() for id_ in ids), b"order 1"])


@pytest.mark.parametrize("operation", ["send", "half"])
def test_a_trace_with_a_control_character_is_refused_by_name(wire: Wire, orders: str, operation: str) -> None:
    given = {"producer_group": orders} if operation == "half" else {}
    sent = {"op": operation, "topic": orders, "body": "order 1", **given}

    refused, stored = wire.bulk({**sent, "traceparent": "00-\x00"}, sent)

    assert (refused["status"], refused["code"]) == (422, "message_illegal")
    assert "traceparent" in refused["detail"]
    assert stored["status"] == 201


def test_a_bulk_has_one_to_a_thousand_operations(wire: Wire) -> None:
    for count in (0, 1001):
        assert wire.post("/v1/bulk", {"operations": [{"op": "fly"}] * count}).problem == problem(
            422, "message_illegal", f"operations has {count} operations: give 1 to 1000."
        )


def end(wire: Wire, producer: Producer, transaction_id: object, state: str, **more: object) -> Answer:
    """The answer to the end of a transaction by its own group."""
    return wire.post(
        f"/v1/transactions/{transaction_id}/end", {"producer_group": producer.group, "state": state, **more}
    )
