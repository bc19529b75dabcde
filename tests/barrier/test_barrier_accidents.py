"""What happened to a local transaction is what a check answers: every accident, on every database, by every binding."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from mqbroker_client.core.states import LocalTransactionState, Outcome

from tests.barrier.conftest import Shop
from tests.barrier.places import half
from tests.barrier.processes import Process
from tests.broker.polling import at_this_load
from tests.broker.tellings import told

pytestmark = pytest.mark.chaos

COMMIT, ROLLBACK = Outcome(LocalTransactionState.COMMIT), Outcome(LocalTransactionState.ROLLBACK)
UNKNOWN = LocalTransactionState.UNKNOWN
# The wait for a lock, and a new connection.
WITHIN_SECONDS = 1.0


def test_a_commit_whose_end_is_lost_is_answered_commit(shop: Shop, process: Process) -> None:
    order_id = process.order()
    transaction_id = process.until_half()
    process.go_on()
    process.until("ending")
    process.kill()

    assert shop.place.barrier.answer([half(transaction_id)]) == [COMMIT]
    assert order_id in shop.place.orders()


def test_a_kill_before_the_commit_is_answered_rollback(shop: Shop, process: Process) -> None:
    order_id = process.order()
    transaction_id = process.until_half()
    process.kill()

    # The server notices in its own time that its client is gone.
    outcomes = [shop.place.barrier.answer([half(transaction_id)])[0] for _ in range(2)]
    assert outcomes[-1] == ROLLBACK
    assert order_id not in shop.place.orders()


def test_a_commit_that_the_server_refuses_is_rolled_back_at_once(shop: Shop, process: Process) -> None:
    if not shop.place.defers:
        pytest.skip("MariaDB refuses nothing at a COMMIT")
    order_id = process.order(customer_id="nobody's")
    transaction_id = process.until_half()
    process.go_on()

    assert process.until("ending")["state"] == "ROLLBACK"
    process.go_on()
    assert process.finish()["at"] == "failed"
    transaction = told(shop.broker.wire(), transaction_id)
    assert transaction["state"] == "ROLLED_BACK"
    assert [event["by"] for event in transaction["history"] if event["event"] == "end"] == ["producer"]
    assert shop.place.barrier.answer([half(transaction_id)]) == [ROLLBACK]
    assert order_id not in shop.place.orders()


def test_a_transaction_that_runs_is_unknown_in_half_a_second_and_later_the_truth(shop: Shop, process: Process) -> None:
    process.order()
    transaction_id = process.until_half()

    began = time.monotonic()
    [outcome] = shop.place.barrier.answer([half(transaction_id)])
    took = time.monotonic() - began
    process.go_on()
    ended = process.finish()

    assert (outcome.state, took < at_this_load(WITHIN_SECONDS)) == (UNKNOWN, True), (outcome, took)
    assert ended["at"] == "done", ended
    assert shop.place.barrier.answer([half(transaction_id)]) == [COMMIT]
    assert told(shop.broker.wire(), transaction_id)["state"] == "COMMITTED"


def test_a_transaction_that_ends_while_the_check_waits_is_answered_with_the_truth(shop: Shop, process: Process) -> None:
    process.order()
    transaction_id = process.until_half()

    with ThreadPoolExecutor(1) as checks:
        answer = checks.submit(shop.place.barrier.answer, [half(transaction_id)])
        time.sleep(0.15)
        process.go_on()
        outcomes = answer.result()
    process.finish()

    assert outcomes == [COMMIT]


def test_a_stopped_one_is_unknown_until_its_session_is_cut_and_cannot_commit_after(
    shop: Shop, process: Process
) -> None:
    if shop.place.kind == "sqlite":
        pytest.skip("SQLite has no server that could end a session")
    order_id = process.order()
    transaction_id = process.until_half()
    process.send(signal.SIGSTOP)
    while_stopped = shop.place.barrier.check(half(transaction_id))
    shop.place.cut()
    after_the_cut = shop.place.barrier.check(half(transaction_id))
    process.send(signal.SIGCONT)
    process.go_on()
    ended = process.finish()

    assert (while_stopped, after_the_cut) == (UNKNOWN, LocalTransactionState.ROLLBACK)
    assert ended["at"] == "failed"
    assert order_id not in shop.place.orders()
