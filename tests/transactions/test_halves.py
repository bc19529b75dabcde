"""Half messages: stored and durable, and visible to no consumer until their transaction is committed."""

from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

from mqbroker_client import Consumer, Message, Producer, Transaction

from tests.broker.characters import bodies, name
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.wire import Wire, problem


def test_a_half_message_is_invisible_until_it_is_committed(producer: Producer, consumer: Consumer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")
    assert consumer.receive(orders) == []

    transaction.commit()

    assert bodies(consumer.receive(orders)) == [b"order 1"]


def test_a_half_message_that_is_rolled_back_is_never_seen(producer: Producer, consumer: Consumer, orders: str) -> None:
    rolled_back = producer.begin(orders, b"order 1", queue_id=0)
    rolled_back.rollback()
    producer.send(orders, b"order 2", queue_id=0)

    assert bodies(consumer.receive(orders)) == [b"order 2"]
    page = consumer.pull(orders, 0, 0)
    assert (bodies(page.messages), page.max_offset) == ([b"order 2"], 1)


def test_the_answer_to_a_half_message_tells_when_it_is_asked_about(wire: Wire, producer: Producer, orders: str) -> None:
    transaction_id, message_id = str(uuid4()), str(uuid4())
    half = {"topic": orders, "body": "order 1", "message_id": message_id, "producer_group": producer.group}

    answer = wire.post("/v1/transactions", {**half, "transaction_id": transaction_id})

    stored_at = datetime.fromisoformat(wire.get(f"/v1/transactions/{transaction_id}").document["history"][0]["at"])
    assert answer.status == 201
    # With several cells it names that of the transaction.
    assert {name: value for name, value in answer.document.items() if name != "cell"} == {
        "transaction_id": transaction_id,
        "message_id": message_id,
        "message_ids": [message_id],
        "commit_log_offset": answer.document["commit_log_offset"],
        "state": "PREPARED",
        "next_check_at": rfc3339(stored_at + timedelta(seconds=1)),
    }


def test_a_transaction_is_answered_with_its_messages_and_its_history(
    wire: Wire, producer: Producer, orders: str
) -> None:
    transaction = producer.begin(orders, b"order 1", queue_id=2)
    transaction.commit()

    found = wire.get(f"/v1/transactions/{transaction.transaction_id}").document

    prepared, ended = found.pop("history")
    assert found == {
        "transaction_id": str(transaction.transaction_id),
        "producer_group": producer.group,
        "state": "COMMITTED",
        "check_times": 0,
        "next_check_at": None,
        "last_failure": None,
        "commit_log_offset": transaction.commit_log_offset,
        "messages": [{"message_id": str(transaction.message_id), "topic": orders, "queue_id": 2, "queue_offset": 0}],
    }
    assert prepared == {"event": "prepared", "at": prepared["at"]}
    assert ended == {"event": "end", "at": ended["at"], "state": "COMMIT", "by": "producer", "remark": None}
    assert prepared["at"] < ended["at"]


def test_a_transaction_that_does_not_exist_is_not_found(wire: Wire) -> None:
    nowhere = uuid4()

    assert wire.get(f"/v1/transactions/{nowhere}").problem == problem(
        404,
        "transaction_not_found",
        f"There is no transaction {nowhere}: it was never stored, or retention has deleted it.",
    )
    assert wire.get("/v1/transactions/1").problem == problem(
        404, "transaction_not_found", "There is no transaction 1: a transaction_id is a UUID."
    )


def test_a_repeated_begin_stores_nothing_and_is_answered_alike(wire: Wire, producer: Producer, orders: str) -> None:
    half = {
        "topic": orders,
        "body": "order 1",
        "producer_group": producer.group,
        "transaction_id": str(uuid4()),
        "check_immunity_seconds": 60,
    }
    first = wire.post("/v1/transactions", half)

    again = wire.post("/v1/transactions", half)

    assert (first.status, again.status) == (201, 200)
    assert again.document == {**first.document, "duplicate": True}


def test_a_begin_that_is_repeated_after_the_commit_commits_nothing_anew(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    transaction_id = uuid4()
    message = Message(orders, b"order 1")
    producer.begin_messages([message], transaction_id=transaction_id).commit()

    again = producer.begin_messages([message], transaction_id=transaction_id)

    assert (again.duplicate, again.next_check_at) == (True, None)
    assert again.commit().state == "COMMITTED"
    assert bodies(consumer.receive(orders)) == [b"order 1"]


def test_a_begin_is_known_by_its_message_when_it_names_no_transaction(
    wire: Wire, producer: Producer, orders: str
) -> None:
    half = {"topic": orders, "body": "order 1", "producer_group": producer.group, "message_id": str(uuid4())}
    first = wire.post("/v1/transactions", half)

    again = wire.post("/v1/transactions", half)

    assert again.status == 200
    assert again.document == {**first.document, "duplicate": True, "next_check_at": again.document["next_check_at"]}


def test_the_id_of_a_transaction_is_not_taken_for_another_body(wire: Wire, producer: Producer, orders: str) -> None:
    transaction_id = str(uuid4())
    half = {"topic": orders, "body": "order 1", "producer_group": producer.group, "transaction_id": transaction_id}
    message_id = wire.post("/v1/transactions", half).document["message_id"]

    other_body = wire.post("/v1/transactions", {**half, "body": "order 2"})
    other_message = wire.post("/v1/transactions", {**half, "message_id": str(uuid4())})
    other_group = wire.post("/v1/transactions", {**half, "producer_group": name("other")})

    assert other_body.problem == problem(
        409,
        "message_id_reused",
        f"The message_id {message_id} was used for another message: use a new id for a new message.",
    )
    assert other_message.problem == problem(
        409,
        "message_id_reused",
        f"The transaction_id {transaction_id} was used for other messages: use a new id.",
    )
    assert other_group.problem == problem(
        409,
        "message_id_reused",
        f"The transaction_id {transaction_id} was used for another transaction: use a new id.",
    )


def test_the_id_of_a_message_that_was_sent_begins_no_transaction(wire: Wire, producer: Producer, orders: str) -> None:
    sent = producer.send(orders, b"order 1")
    half = {"topic": orders, "body": "order 1", "message_id": str(sent.message_id), "producer_group": producer.group}

    assert wire.post("/v1/transactions", half).problem == problem(
        409,
        "message_id_reused",
        f"The message_id {sent.message_id} was used for another message: use a new id for a new message.",
    )


def test_messages_of_several_topics_are_committed_together(
    producer: Producer, consumer: Consumer, orders: str, coupons: str
) -> None:
    messages = [Message(orders, b"order 1"), Message(coupons, b"coupon 1"), Message(orders, b"order 2")]
    transaction = producer.begin_messages(messages)
    assert consumer.receive(orders) + consumer.receive(coupons) == []

    ended = transaction.commit()

    assert [placed.message_id for placed in ended.messages] == [message.message_id for message in messages]
    assert sorted(bodies(consumer.receive(orders))) == [b"order 1", b"order 2"]
    assert bodies(consumer.receive(coupons)) == [b"coupon 1"]


def test_messages_of_several_topics_are_rolled_back_together(
    producer: Producer, consumer: Consumer, orders: str, coupons: str
) -> None:
    producer.begin_messages([Message(orders, b"order 1"), Message(coupons, b"coupon 1")]).rollback()

    assert consumer.receive(orders) + consumer.receive(coupons) == []


def test_one_bad_message_keeps_the_whole_transaction_out(wire: Wire, producer: Producer, orders: str) -> None:
    transaction_id = str(uuid4())
    messages = [{"topic": orders, "body": "order 1"}, {"topic": orders, "body": "order 2", "tags": "a|b"}]

    answer = wire.post(
        "/v1/transactions",
        {"messages": messages, "producer_group": producer.group, "transaction_id": transaction_id},
    )

    assert answer.problem["code"] == "message_illegal"
    made = (f"transactions/{transaction_id}", f"producer-groups/{producer.group}", f"topics/{orders}")
    assert [wire.get(f"/v1/{path}").status for path in made] == [404, 404, 404]


def test_the_messages_of_a_transaction_are_one_or_a_list_and_not_both(
    wire: Wire, producer: Producer, orders: str
) -> None:
    message = {"topic": orders, "body": "order 1"}
    group = {"producer_group": producer.group}
    both = "A transaction has either the fields of one message or a list in messages: give one of the two."

    assert wire.post("/v1/transactions", {**group, **message, "messages": [message]}).problem == problem(
        422, "message_illegal", both
    )
    assert wire.post("/v1/transactions", {**group, "tags": "paid", "messages": [message]}).problem == problem(
        422, "message_illegal", both
    )
    assert wire.post("/v1/transactions", {**group, "messages": []}).problem == problem(
        422, "batch_illegal", "messages is empty: give at least one message."
    )
    assert wire.post("/v1/transactions", {**group, "messages": [message] * 129}).problem == problem(
        422, "batch_illegal", "messages has 129 messages, the limit is 128."
    )


def test_two_messages_of_a_transaction_have_two_ids(wire: Wire, producer: Producer, orders: str) -> None:
    message = {"topic": orders, "body": "order 1", "message_id": str(uuid4())}

    answer = wire.post("/v1/transactions", {"producer_group": producer.group, "messages": [message, message]})

    assert answer.problem == problem(
        409,
        "message_id_reused",
        "Two messages of the transaction have the same message_id: give each message another id.",
    )


def test_the_messages_of_a_transaction_are_together_no_larger_than_one_may_be(
    wire: Wire, producer: Producer, orders: str
) -> None:
    half = {"topic": orders, "body": "x" * (2 * 1024 * 1024 + 1)}

    answer = wire.post("/v1/transactions", {"producer_group": producer.group, "messages": [half, half]})

    assert answer.problem == problem(
        413, "message_too_large", "The bodies have 4194306 bytes together, the limit is 4194304."
    )


def test_the_delay_of_a_half_message_counts_from_its_commit(
    wire: Wire, producer: Producer, consumer: Consumer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    at_level = producer.begin(orders, b"at level 1", delay_level=1)
    at_time = producer.begin(orders, b"after 1 s", delay_seconds=1)

    # The checks commit them a second after they were stored: a delay from then on would be over.
    decided = {
        b"at level 1": eventually(partial(committed_at, wire, at_level)),
        b"after 1 s": eventually(partial(committed_at, wire, at_time)),
    }
    arrived: dict[bytes, datetime] = {}
    while len(arrived) < 2:
        arrived |= {body: datetime.now(UTC) for body in bodies(eventually(partial(consumer.receive, orders)))}

    assert [body for body in decided if arrived[body] < decided[body] + timedelta(seconds=1)] == []


def test_a_check_url_is_one_that_the_group_has_registered(wire: Wire, producer: Producer, orders: str) -> None:
    half = {"topic": orders, "body": "order 1", "producer_group": producer.group}
    refusal = (
        f"is not an endpoint of the producer group {producer.group}: "
        f"register it at POST /v1/producer-groups/{producer.group}/endpoints."
    )

    for url in ("http://127.0.0.1:1/checks", "http://\x00"):
        assert wire.post("/v1/transactions", {**half, "check_url": url}).problem == problem(
            422, "message_illegal", f"check_url {url!r} {refusal}"
        )


def test_a_producer_group_has_a_name(wire: Wire, orders: str) -> None:
    half = {"topic": orders, "body": "order 1"}

    assert wire.post("/v1/transactions", {**half, "producer_group": "a b"}).problem == problem(
        422,
        "message_illegal",
        "producer_group 'a b' is not a valid group name: 1 to 127 letters, digits and % | _ -.",
    )
    assert wire.post("/v1/transactions", half).problem == problem(
        422,
        "message_illegal",
        "producer_group is missing: give a text.",
    )


def committed_at(wire: Wire, transaction: Transaction) -> datetime | None:
    """When a transaction was committed, or None as long as it was not."""
    history = wire.get(f"/v1/transactions/{transaction.transaction_id}").document["history"]
    ends = [event["at"] for event in history if event.get("state") == "COMMIT"]
    return datetime.fromisoformat(ends[0]) if ends else None


def rfc3339(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
