"""Check-back: the broker asks a producer about an undecided half message, and its answer decides."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

import pytest
from aiohttp import web
from mqbroker_client import Consumer, Message, Producer
from standardwebhooks import Webhook

from tests.broker import characters
from tests.broker.characters import bodies, register
from tests.broker.endpoints import Asked, ProducerEndpoint, says, states
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import after_a_check, ended, told
from tests.broker.wire import Wire


@pytest.fixture
def other_endpoint() -> Iterator[ProducerEndpoint]:
    """Another server that is not registered yet; it commits."""
    with ProducerEndpoint() as endpoint:
        endpoint.replies(states("COMMIT"))
        yield endpoint


@pytest.mark.parametrize(("answer", "state"), [("COMMIT", "COMMITTED"), ("ROLLBACK", "ROLLED_BACK")])
def test_an_undecided_transaction_is_decided_by_its_producers_answer(
    wire: Wire,
    producer: Producer,
    consumer: Consumer,
    producer_endpoint: ProducerEndpoint,
    orders: str,
    answer: str,
    state: str,
) -> None:
    producer_endpoint.replies(states(answer))
    transaction = producer.begin(orders, b"order 1")

    told = eventually(partial(ended, wire, transaction.transaction_id))

    check, end = told["history"][1:]
    assert (told["state"], told["check_times"]) == (state, 1)
    assert check == {
        "event": "check",
        "at": check["at"],
        "endpoint": producer_endpoint.url,
        "status": 200,
        "latency_ms": check["latency_ms"],
        "answer": answer,
        "counted": True,
        "reason": None,
    }
    assert end == {"event": "end", "at": end["at"], "state": answer, "by": "check", "remark": None}
    assert bodies(consumer.receive(orders)) == ([b"order 1"] if answer == "COMMIT" else [])


def test_a_check_tells_the_whole_message_and_is_signed(
    broker: RunningBroker, wire: Wire, producer: Producer, endpoint: ProducerEndpoint, orders: str
) -> None:
    secret = register(broker, producer.group, endpoint.url)
    message = Message(
        orders,
        b"order \xff",
        tags="paid",
        keys=["order-1", "customer-7"],
        properties={"region": "eu"},
        sharding_key="customer-7",
    )
    transaction = producer.begin_messages([message])

    eventually(partial(ended, wire, transaction.transaction_id))

    [asked] = endpoint.asked
    assert Webhook(secret).verify(asked.body, dict(asked.headers)) == asked.document
    [entry] = asked.document.pop("transactions")
    prepared_at = told(wire, transaction.transaction_id)["history"][0]["at"]
    assert {**asked.document, "transactions": None} == {
        "type": "transaction.check",
        "producer_group": producer.group,
        "transactions": None,
    }
    assert entry == {
        "transaction_id": str(transaction.transaction_id),
        "topic": orders,
        "message_id": str(message.message_id),
        "body_base64": "b3JkZXIg/w==",
        "tags": "paid",
        "keys": ["order-1", "customer-7"],
        "sharding_key": "customer-7",
        "properties": {"region": "eu", "TRANSACTION_CHECK_TIMES": "1"},
        "born_at": prepared_at,
        "stored_at": prepared_at,
        "commit_log_offset": transaction.commit_log_offset,
        "queue_id": told(wire, transaction.transaction_id)["messages"][0]["queue_id"],
        "check_times": 1,
        "last_failure": None,
    }


def test_a_check_of_several_messages_tells_them_all(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str, coupons: str
) -> None:
    transaction = producer.begin_messages([Message(orders, b"order 1"), Message(coupons, b"coupon 1")])

    eventually(partial(ended, wire, transaction.transaction_id))

    [entry] = producer_endpoint.about(transaction.transaction_id)
    assert (entry["topic"], entry["body"]) == (orders, "order 1")
    assert [(message["topic"], message["body"]) for message in entry["messages"]] == [
        (orders, "order 1"),
        (coupons, "coupon 1"),
    ]


def test_a_later_check_tells_how_often_it_was_asked_and_why_again(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(says(500), states("COMMIT"))
    transaction = producer.begin(orders, b"order 1")

    eventually(partial(ended, wire, transaction.transaction_id))

    first, second = producer_endpoint.about(transaction.transaction_id)
    assert (first["check_times"], first["last_failure"]) == (1, None)
    assert (second["check_times"], second["last_failure"]) == (2, "The endpoint answered 500.")
    assert second["properties"]["TRANSACTION_CHECK_TIMES"] == "2"


def test_the_senders_own_endpoint_is_asked_first_and_then_the_others_in_turn(
    broker: RunningBroker,
    wire: Wire,
    producer: Producer,
    endpoint: ProducerEndpoint,
    other_endpoint: ProducerEndpoint,
    orders: str,
) -> None:
    register(broker, producer.group, endpoint.url)
    register(broker, producer.group, other_endpoint.url)
    other_endpoint.replies(states("UNKNOWN"))
    transaction = producer.begin(orders, b"order 1", check_url=other_endpoint.url)

    decided = eventually(partial(ended, wire, transaction.transaction_id))

    asked = [event["endpoint"] for event in decided["history"] if event["event"] == "check"]
    assert asked == [other_endpoint.url, endpoint.url]


def test_another_endpoint_of_the_group_answers_for_one_that_is_away(
    broker: RunningBroker,
    wire: Wire,
    producer: Producer,
    endpoint: ProducerEndpoint,
    other_endpoint: ProducerEndpoint,
    orders: str,
) -> None:
    register(broker, producer.group, endpoint.url)
    register(broker, producer.group, other_endpoint.url)
    other_endpoint.close()
    transaction = producer.begin(orders, b"order 1", check_url=other_endpoint.url)

    decided = eventually(partial(ended, wire, transaction.transaction_id))

    assert (decided["state"], decided["check_times"]) == ("COMMITTED", 1)
    assert decided["history"][1]["endpoint"] == endpoint.url


def test_checks_follow_each_other_by_their_interval(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(states("UNKNOWN"))
    transaction = producer.begin(orders, b"order 1")

    eventually(lambda: told(wire, transaction.transaction_id)["check_times"] == 3)

    checks = [event for event in told(wire, transaction.transaction_id)["history"] if event["event"] == "check"]
    first, second, third = (datetime.fromisoformat(check["at"]) for check in checks)
    interval = timedelta(seconds=1)
    assert second - first >= interval
    assert third - second >= interval
    # The ticks that start checks are two seconds apart: by them alone, the third came 4 s after the first.
    assert third - first < 3.5 * interval


def test_a_check_that_reaches_no_endpoint_is_not_counted(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.close()
    transaction = producer.begin(orders, b"order 1")
    in_vain = eventually(partial(after_a_check, wire, transaction.transaction_id))["history"][1]
    producer_endpoint.open()

    decided = eventually(partial(ended, wire, transaction.transaction_id))

    assert (in_vain["counted"], in_vain["answer"], in_vain["status"]) == (False, None, None)
    assert in_vain["reason"].startswith("No connection: ")
    assert (decided["state"], decided["check_times"]) == ("COMMITTED", 1)


def test_a_half_message_of_a_group_without_an_endpoint_waits_for_one(
    broker: RunningBroker, wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    lonely = Producer(broker.client(), characters.name("lonely-service"))
    waiting = lonely.begin(orders, b"order 1")
    for body in (b"order 2", b"order 3"):
        # When one that was begun later has been asked about, this one has been due, too.
        eventually(partial(ended, wire, producer.begin(orders, body).transaction_id))

    before = told(wire, waiting.transaction_id)
    register(broker, lonely.group, producer_endpoint.url)
    decided = eventually(partial(ended, wire, waiting.transaction_id))

    assert (before["state"], before["check_times"], len(before["history"])) == ("PREPARED", 0, 1)
    assert (decided["state"], decided["check_times"]) == ("COMMITTED", 1)


def test_halves_that_are_due_together_go_into_few_calls(
    broker: RunningBroker, wire: Wire, producer: Producer, endpoint: ProducerEndpoint, orders: str
) -> None:
    register(broker, producer.group, endpoint.url, max_batch=10)
    half = {"op": "half", "topic": orders, "body": "order", "producer_group": producer.group}

    begun = wire.bulk(*[half] * 20)

    decided = [eventually(partial(ended, wire, result["transaction_id"])) for result in begun]
    assert {telling["state"] for telling in decided} == {"COMMITTED"}
    sizes = [len(asked.transactions) for asked in endpoint.asked]
    # Those that are due an instant before the others may go by themselves.
    assert sum(sizes) == 20
    assert max(sizes) == 10
    assert len(sizes) <= 4


def test_an_end_that_arrives_during_a_check_wins_over_its_answer(
    wire: Wire, producer: Producer, consumer: Consumer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    async def ends_and_answers_otherwise(asked: Asked) -> web.StreamResponse:
        transaction_id = asked.transactions[0]["transaction_id"]
        await asyncio.to_thread(
            wire.post,
            f"/v1/transactions/{transaction_id}/end",
            {"producer_group": producer.group, "state": "COMMIT"},
        )
        return await states("ROLLBACK")(asked)

    producer_endpoint.replies(ends_and_answers_otherwise)
    transaction = producer.begin(orders, b"order 1")

    check, end = eventually(partial(after_a_check, wire, transaction.transaction_id))["history"][1:]

    assert (check["event"], check["answer"], check["counted"]) == ("check", "ROLLBACK", True)
    assert (end["event"], end["state"], end["by"]) == ("end", "COMMIT", "producer")
    assert bodies(consumer.receive(orders)) == [b"order 1"]


def test_no_endpoint_is_asked_about_a_transaction_that_was_ended(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    done = producer.begin(orders, b"order 1")
    done.commit()
    lost = producer.begin(orders, b"order 2")

    eventually(partial(ended, wire, lost.transaction_id))

    assert len(producer_endpoint.about(lost.transaction_id)) == 1
    assert producer_endpoint.about(done.transaction_id) == []
