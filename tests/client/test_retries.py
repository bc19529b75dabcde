"""The client repeats a request only where that is safe, with the same ids, and within its limits."""

import time
from typing import Any
from uuid import UUID

import pytest
from mqbroker_client import Broker, LocalTransactionState, Message, Producer, Retry, errors

from tests.client.answers import COMMITTED, PREPARED, SENT, TRANSACTION_ID, problem
from tests.client.servers import Answer, Asked, HangUp, ScriptedServer, Silence, busy, scripted


def producer_of(server: ScriptedServer, **limits: Any) -> Producer:
    return Producer(Broker(server.url, "mq_key", **limits), "shop")


def distinct(asked: list[Asked]) -> int:
    return len({repr((request.method, request.path, request.body)) for request in asked})


@pytest.mark.parametrize(
    "trouble", [busy(), busy(code="outcome_unknown"), HangUp(), Answer(502, b"<html>Bad gateway</html>")]
)
def test_a_send_is_repeated_with_the_same_message_id(trouble: Answer | HangUp) -> None:
    with scripted(trouble, trouble, SENT) as server:
        sent = producer_of(server).send("orders", b"order 1", keys=["order-1"])

    assert (sent.queue_id, sent.queue_offset, sent.duplicate) == (1, 7, False)
    assert len(server.asked) == 3
    assert distinct(server.asked) == 1
    assert UUID(server.asked[0].body["message_id"]).version == 7


def test_a_half_is_repeated_with_the_same_transaction_and_message_ids() -> None:
    with scripted(busy(code="outcome_unknown"), HangUp(), PREPARED) as server:
        transaction = producer_of(server).begin("orders", b"order 1")

    assert len(server.asked) == 3
    assert distinct(server.asked) == 1
    assert server.asked[0].body["transaction_id"] == str(transaction.transaction_id)
    assert server.asked[0].body["message_id"] == str(transaction.message_id)


def test_an_end_is_repeated() -> None:
    with scripted(busy(), COMMITTED) as server:
        ended = producer_of(server).end(UUID(TRANSACTION_ID), LocalTransactionState.COMMIT)

    assert ended.state == "COMMITTED"
    assert distinct(server.asked) == 1


def test_the_broker_says_when_to_come_again() -> None:
    with scripted(busy(retry_after="1"), SENT) as server:
        began = time.monotonic()
        producer_of(server).send("orders", b"order 1")

    assert time.monotonic() - began >= 1


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "bad_request"), (409, "message_id_reused"), (422, "message_illegal"), (429, "rate_limited")],
)
def test_a_refusal_is_never_repeated(status: int, code: str) -> None:
    with scripted(problem(status, code, "No."), SENT) as server, pytest.raises(errors.BrokerError, match="No"):
        producer_of(server).send("orders", b"order 1")

    assert len(server.asked) == 1


def test_tries_end() -> None:
    with scripted(busy()) as server, pytest.raises(errors.SystemBusy):
        producer_of(server, retry=Retry(tries=3)).send("orders", b"order 1")

    assert len(server.asked) == 3


def test_time_ends_before_a_pause_that_would_outlast_it() -> None:
    with scripted(busy(retry_after="60")) as server, pytest.raises(errors.SystemBusy) as refused:
        producer_of(server, retry=Retry(tries=3, seconds=3)).send("orders", b"order 1")

    assert len(server.asked) == 1
    assert refused.value.retry_after_seconds == 60


def test_a_silent_broker_costs_no_more_than_the_time_given() -> None:
    with scripted(Silence()) as server:
        began = time.monotonic()
        with pytest.raises(errors.Unreachable):
            producer_of(server, retry=Retry(tries=3, seconds=0.5)).send("orders", b"order 1")
        took = time.monotonic() - began

    assert 0.4 < took < 2


def test_a_message_object_keeps_its_id_over_sends() -> None:
    message = Message("orders", b"order 1")
    with scripted(SENT) as server:
        producer = producer_of(server)
        producer.send_message(message)
        producer.send_message(message)

    assert distinct(server.asked) == 1


def test_a_broker_that_is_not_there_is_unreachable() -> None:
    with scripted(SENT) as server:
        pass

    with pytest.raises(errors.Unreachable) as failed:
        producer_of(server, retry=Retry(tries=2)).send("orders", b"order 1")

    assert failed.value.code == "unreachable"
    assert failed.value.request_id
