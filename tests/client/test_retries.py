"""The client repeats a request only where that is safe, with the same ids, and within its limits."""

import socket
import time
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from mqbroker_client import Broker, HalfMessage, LocalTransactionState, Message, Producer, Retry, TransactionProducer
from mqbroker_client.core import errors

from tests.broker.polling import at_this_load
from tests.client.answers import COMMITTED, PREPARED, SENT, TRANSACTION_ID, problem
from tests.client.servers import Answer, Asked, Cut, HangUp, ScriptedServer, Silence, Stall, busy, scripted


def producer_of(server: ScriptedServer, **limits: Any) -> Producer:
    return Producer(Broker(server.url, "mq_key", **limits), "shop")


def distinct(asked: list[Asked]) -> int:
    return len({repr((request.method, request.path, request.body)) for request in asked})


@pytest.mark.parametrize(
    "trouble",
    [
        busy(),
        busy(code="outcome_unknown"),
        problem(429, "rate_limited", "Slower."),
        HangUp(),
        Cut(),
        Answer(502, b"<html>Bad gateway</html>"),
    ],
)
def test_a_send_is_repeated_with_the_same_message_id(trouble: Answer | HangUp | Cut) -> None:
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


@pytest.mark.parametrize(
    "refusal", [busy(retry_after="1"), replace(problem(429, "rate_limited", "Slower."), headers={"Retry-After": "1"})]
)
def test_the_broker_says_when_to_come_again(refusal: Answer) -> None:
    with scripted(refusal, SENT) as server:
        began = time.monotonic()
        producer_of(server).send("orders", b"order 1")

    assert time.monotonic() - began >= 1


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "bad_request"), (409, "message_id_reused"), (422, "message_illegal")],
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


@pytest.mark.parametrize("stalled", [Silence(), Stall()])
def test_a_stalled_server_leaves_time_for_another_try(stalled: Silence | Stall) -> None:
    with scripted(stalled, SENT) as server:
        began = time.monotonic()
        sent = producer_of(server, retry=Retry(tries=3, seconds=4)).send("orders", b"order 1")
        took = time.monotonic() - began

    assert sent.queue_offset == 7
    assert distinct(server.asked) == 1
    assert 2 <= took < at_this_load(4)


def test_a_stalled_half_is_tried_again_within_its_three_seconds() -> None:
    with scripted(Silence(), PREPARED, COMMITTED) as server:
        producer = TransactionProducer(producer_of(server), Listener())
        sent = producer.send_message_in_transaction(Message("orders", b"order 1"))

    assert sent.ended
    assert server.asked[0].body == server.asked[1].body


class Listener:
    """A local transaction that succeeds."""

    def execute_local_transaction(self, half: HalfMessage, arg: object) -> LocalTransactionState:
        return LocalTransactionState.COMMIT

    def check_local_transaction(self, half: HalfMessage) -> LocalTransactionState:
        return LocalTransactionState.COMMIT


def test_a_host_that_takes_no_connection_is_given_up_before_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        # Its queue is full, and nothing accepts: the kernel drops what else comes.
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        broker = Broker(f"http://127.0.0.1:{address[1]}", "mq_key", connect_seconds=0.2)
        began = time.monotonic()
        with pytest.raises(errors.Unreachable):
            broker.call("GET", "/v1/anything", retry=Retry(tries=2, seconds=10))
        took = time.monotonic() - began
        for one in waiting:
            one.close()

    assert took < at_this_load(3)


def test_an_answer_of_another_request_is_not_taken_and_the_request_repeated() -> None:
    others = Answer(201, COMMITTED.body, {"X-Request-Id": "of-another"})
    with scripted(others, SENT) as server:
        sent = producer_of(server).send("orders", b"order 1")

    assert sent.queue_offset == 7
    assert len(server.asked) == 2
    assert distinct(server.asked) == 1


def test_a_proxy_that_replaces_request_ids_is_named() -> None:
    with scripted(Answer(200, headers={"X-Request-Id": "of-a-proxy"})) as server:
        broker = Broker(server.url, "mq_key", retry=Retry(tries=2))
        with pytest.raises(errors.AnswerOfAnotherRequest) as refused:
            broker.call("GET", "/v1/anything")

    own = server.asked[0].headers["x-request-id"]
    assert (refused.value.code, refused.value.request_id) == ("answer_of_another_request", own)
    assert refused.value.detail == (
        f"the answer from {server.url} bears the X-Request-Id 'of-a-proxy' and the request '{own}': a connection is "
        "shared between processes, or a proxy replaces the id and must pass it on"
    )


def test_a_silent_broker_costs_no_more_than_the_time_given() -> None:
    with scripted(Silence()) as server:
        began = time.monotonic()
        with pytest.raises(errors.Unreachable):
            producer_of(server, retry=Retry(tries=3, seconds=0.5)).send("orders", b"order 1")
        took = time.monotonic() - began

    assert 0.4 < took < at_this_load(2)


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
