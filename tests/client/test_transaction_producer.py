"""`send_message_in_transaction`: half, local transaction, end, and what each accident between them leads to."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from mqbroker_client import (
    Broker,
    HalfMessage,
    LocalTransactionState,
    Message,
    Producer,
    Retry,
    TransactionProducer,
    errors,
)

from tests.client.answers import COMMITTED, PREPARED, STILL_PREPARED, problem
from tests.client.servers import HangUp, ScriptedServer, Silence, busy, scripted

COMMIT = LocalTransactionState.COMMIT
UNKNOWN = LocalTransactionState.UNKNOWN


@dataclass
class Orders:
    """A program whose local transaction answers as it is told, and which remembers what it was given."""

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

    assert 2.9 < took < 4
    assert orders.executed == []


def failing() -> LocalTransactionState:
    raise RuntimeError("the disk is full")


@pytest.mark.parametrize(
    ("local", "remark"),
    [(failing, "RuntimeError: the disk is full"), (lambda: None, "returned None, not COMMIT, ROLLBACK or UNKNOWN")],
)
def test_a_local_transaction_that_does_not_say_is_unknown(
    local: Callable[[], LocalTransactionState | None], remark: str
) -> None:
    with scripted(PREPARED, STILL_PREPARED) as server:
        sent = producer_of(server, Orders(local)).send_message_in_transaction(Message("orders", b"order 1"))

    assert (sent.state, sent.remark) == (UNKNOWN, remark)
    assert (server.asked[1].body["state"], server.asked[1].body["remark"]) == ("UNKNOWN", remark)


def test_a_lost_end_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    with scripted(PREPARED, HangUp()) as server, caplog.at_level(logging.WARNING, "mqbroker_client"):
        sent = producer_of(server, Orders()).send_message_in_transaction(Message("orders", b"order 1"))

    assert (sent.state, sent.ended) == (COMMIT, False)
    assert f"transaction {sent.transaction_id}: COMMIT was not told, a check decides" in caplog.text
