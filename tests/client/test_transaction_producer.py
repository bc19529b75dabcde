"""`send_message_in_transaction`: half, local transaction, end, and what each accident between them leads to."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from mqbroker_client import (
    Broker,
    Consumer,
    HalfMessage,
    LocalTransactionState,
    Message,
    Producer,
    Retry,
    TransactionProducer,
)
from mqbroker_client.core import errors
from mqbroker_client.core.ids import uuid7

from tests.broker.characters import name
from tests.broker.polling import at_this_load
from tests.broker.running import RunningBroker
from tests.client.answers import COMMITTED, PREPARED, STILL_PREPARED, TRANSACTION_ID, problem
from tests.client.servers import Answer, HangUp, ScriptedServer, Silence, busy, scripted

COMMIT = LocalTransactionState.COMMIT
UNKNOWN = LocalTransactionState.UNKNOWN


@dataclass
class Orders:
    """A program with a scripted local transaction, which keeps its arguments."""

    local: Callable[[], LocalTransactionState | None] = lambda: COMMIT
    executed: list[tuple[HalfMessage, object]] = field(default_factory=list)

    def execute_local_transaction(self, half: HalfMessage, arg: object) -> LocalTransactionState | None:
        self.executed.append((half, arg))
        return self.local()

    def check_local_transaction(self, half: HalfMessage) -> LocalTransactionState | None:
        return self.local()


def producer_of(server: ScriptedServer, orders: Orders) -> TransactionProducer:
    return TransactionProducer(Producer(Broker(server.url, "mq_key", retry=Retry(tries=2)), "shop"), orders)


def test_the_local_transaction_runs_between_half_and_end() -> None:
    orders = Orders()
    with scripted(PREPARED, COMMITTED) as server:
        sent = producer_of(server, orders).send_message_in_transaction(Message("orders", b"order 1"), "basket")

    half, end = server.asked
    (executed, arg) = orders.executed[0]
    assert (executed.body, executed.transaction_id, arg) == (b"order 1", sent.transaction_id, "basket")
    assert half.body["transaction_id"] == str(sent.transaction_id)
    assert end.path == f"/v1/transactions/{sent.transaction_id}/end"
    assert end.body == {"producer_group": "shop", "state": "COMMIT", "from_transaction_check": False}
    assert (sent.state, sent.ended) == (COMMIT, True)


def test_the_half_is_tried_three_times_with_the_same_ids() -> None:
    with scripted(busy(), HangUp(), PREPARED, COMMITTED) as server:
        sent = producer_of(server, Orders()).send_message_in_transaction(Message("orders", b"order 1"))

    assert server.asked[0].body == server.asked[1].body == server.asked[2].body
    assert sent.ended


@pytest.mark.parametrize("trouble", [busy(), HangUp(), problem(403, "transactions_rejected", "Halves are refused.")])
def test_without_a_stored_half_the_local_transaction_does_not_run(trouble: HangUp) -> None:
    orders = Orders()
    with scripted(trouble) as server, pytest.raises(errors.BrokerError):
        producer_of(server, orders).send_message_in_transaction(Message("orders", b"order 1"))

    assert orders.executed == []
    assert len(server.asked) in (1, 3)


def test_a_half_is_given_up_after_three_seconds_in_all() -> None:
    orders = Orders()
    with scripted(Silence()) as server:
        began = time.monotonic()
        with pytest.raises(errors.Unreachable):
            producer_of(server, orders).send_message_in_transaction(Message("orders", b"order 1"))
        took = time.monotonic() - began

    assert 2.9 < took < at_this_load(4)
    assert orders.executed == []


def without_a_file() -> LocalTransactionState:
    # As the name of a file that is no UTF-8.
    raise FileNotFoundError("no \udcff")


def failing() -> LocalTransactionState:
    raise RuntimeError("the disk is full")


@pytest.mark.parametrize(
    ("local", "remark"),
    [
        (failing, "RuntimeError: the disk is full"),
        (lambda: None, "returned None, not COMMIT, ROLLBACK or UNKNOWN"),
    ],
)
def test_a_local_transaction_that_does_not_say_is_unknown(
    local: Callable[[], LocalTransactionState | None], remark: str
) -> None:
    with scripted(PREPARED, STILL_PREPARED) as server:
        sent = producer_of(server, Orders(local)).send_message_in_transaction(Message("orders", b"order 1"))

    assert (sent.state, sent.remark) == (UNKNOWN, remark)
    assert (server.asked[1].body["state"], server.asked[1].body["remark"]) == ("UNKNOWN", remark)


@pytest.mark.usefixtures("nothing_logged")
def test_a_remark_that_is_no_text_is_sent_escaped() -> None:
    with scripted(PREPARED, STILL_PREPARED) as server:
        sent = producer_of(server, Orders(without_a_file)).send_message_in_transaction(Message("orders", b"order 1"))

    assert (sent.ended, server.asked[1].body["remark"]) == (True, "FileNotFoundError: no \\udcff")


def test_a_lost_end_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    with scripted(PREPARED, HangUp()) as server, caplog.at_level(logging.WARNING, "mqbroker_client"):
        sent = producer_of(server, Orders()).send_message_in_transaction(Message("orders", b"order 1"))

    assert (sent.state, sent.ended) == (COMMIT, False)
    assert f"transaction {sent.transaction_id}: COMMIT was not sent, a check ends it" in caplog.text


def test_a_transaction_that_was_decided_before_does_not_run_again() -> None:
    orders = Orders()
    rolled_back = Answer(200, {**PREPARED.body, "state": "ROLLED_BACK", "next_check_at": None, "duplicate": True})  # type: ignore[dict-item]  # a dict
    with scripted(rolled_back) as server, pytest.raises(errors.TransactionEnded) as refused:
        producer_of(server, orders).send_message_in_transaction(
            Message("orders", b"order 1"), transaction_id=UUID(TRANSACTION_ID)
        )

    assert refused.value.detail == (
        f"transaction {TRANSACTION_ID} is already ROLLED_BACK, so its local transaction was not run: "
        "try again without this transaction_id, or with a new one"
    )
    assert orders.executed == []
    assert len(server.asked) == 1


def test_a_message_tried_again_is_a_new_message_in_a_new_transaction(
    broker: RunningBroker, consumer: Consumer, orders: str
) -> None:
    program = Orders()
    transactions = TransactionProducer(Producer(broker.client(), name("shop")), program)
    message = Message(orders, b"order 1")
    given_up = transactions.producer.begin_messages([message])

    sent = transactions.send_message_in_transaction(message)
    given_up.rollback()

    assert sent.ended
    assert sent.message_id != message.message_id
    assert [half.message_id for half, _ in program.executed] == [sent.message_id]
    [delivery] = consumer.receive(orders, wait_seconds=5)
    assert (delivery.message.message_id, delivery.body) == (sent.message_id, b"order 1")


def test_an_id_that_the_program_chose_is_not_used_for_a_second_transaction(broker: RunningBroker, orders: str) -> None:
    producer = Producer(broker.client(), name("shop"))
    message = Message(orders, b"order 1", message_id=uuid7())
    producer.begin_messages([message])

    with pytest.raises(errors.MessageIdReused):
        producer.begin_messages([message])


def test_the_result_has_what_rocketmqs_has(broker: RunningBroker) -> None:
    topic, orders = name("orders"), Orders()
    producer = TransactionProducer(Producer(broker.client(), name("shop")), orders)

    committed = producer.send_message_in_transaction(Message(topic, b"order 1"))
    orders.local = lambda: LocalTransactionState.ROLLBACK
    rolled_back = producer.send_message_in_transaction(Message(topic, b"order 2"))

    [delivery] = Consumer(broker.client(), name("mail")).receive(topic)
    assert (committed.send_status, committed.topic, committed.state) == ("SEND_OK", topic, COMMIT)
    assert committed.queue_offset == 0
    assert committed.queue_id in range(8)
    assert committed.message_id == delivery.message.message_id
    assert (rolled_back.queue_id, rolled_back.queue_offset) == (None, None)
    assert rolled_back.commit_log_offset > committed.commit_log_offset


@pytest.mark.parametrize("spelling", ["COMMIT_MESSAGE", "COMMIT"])
def test_a_state_is_taken_in_rocketmqs_spelling(broker: RunningBroker, spelling: str) -> None:
    topic, local = name("orders"), Orders(lambda: spelling)  # type: ignore[arg-type, return-value]  # a program may do so

    sent = TransactionProducer(Producer(broker.client(), name("shop")), local).send_message_in_transaction(
        Message(topic, b"order 1")
    )

    assert (sent.state, sent.ended) == (COMMIT, True)
    assert LocalTransactionState("UNKNOW") is UNKNOWN
    with pytest.raises(ValueError, match="MAYBE"):
        LocalTransactionState("MAYBE")


def test_a_half_whose_answer_is_lost_is_rolled_back_unless_its_id_was_given() -> None:
    given = uuid7()
    for id_, wanted in ((None, ["transactions", "end"]), (given, ["transactions"])):
        with scripted(lambda asked: COMMITTED if asked.path.endswith("/end") else HangUp()) as server:
            orders = Orders()
            producer = TransactionProducer(
                Producer(Broker(server.url, "mq_key"), "shop"), orders, half_retry=Retry(tries=1, seconds=2)
            )
            with pytest.raises(errors.Unreachable):
                producer.send_message_in_transaction(Message("orders", b"order 1"), transaction_id=id_)
            producer.producer.broker.close()

            assert [asked.path.rsplit("/")[-1] for asked in server.asked] == wanted
            assert orders.executed == []
            if id_ is None:
                assert server.asked[1].body["state"] == "ROLLBACK"
                assert server.asked[0].body["transaction_id"] in server.asked[1].path
