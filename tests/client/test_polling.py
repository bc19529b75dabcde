"""Producers that cannot be called fetch their checks and answer them."""

import threading

from mqbroker_client import Broker, CheckPoller, HalfMessage, LocalTransactionState, Producer, Retry

from tests.client.answers import CHECK, COMMITTED, STILL_PREPARED, TRANSACTION_ID, problem
from tests.client.servers import Answer, ScriptedServer, busy, scripted

DUE = Answer(200, {"transactions": [CHECK]})
NOTHING_DUE = Answer(200, {"transactions": []})


def producer_of(server: ScriptedServer) -> Producer:
    return Producer(Broker(server.url, "mq_key", retry=Retry(tries=1)), "shop")


def commit(half: HalfMessage) -> LocalTransactionState:
    return LocalTransactionState.COMMIT


def fail(half: HalfMessage) -> LocalTransactionState:
    raise LookupError("no such order")


def test_a_due_check_is_fetched_and_ended() -> None:
    with scripted(DUE, COMMITTED) as server:
        asked = CheckPoller(producer_of(server), commit, max_transactions=4, wait_seconds=2).answer_due()

    fetch, end = server.asked
    assert asked == 1
    assert fetch.path == "/v1/producer-groups/shop/checks/receive"
    assert fetch.body == {"max_transactions": 4, "wait_seconds": 2}
    assert end.path == f"/v1/transactions/{TRANSACTION_ID}/end"
    assert end.body == {"producer_group": "shop", "state": "COMMIT", "from_transaction_check": True}


def test_a_failing_check_is_answered_unknown() -> None:
    with scripted(DUE, STILL_PREPARED) as server:
        CheckPoller(producer_of(server), fail).answer_due()

    assert server.asked[1].body["state"] == "UNKNOWN"
    assert server.asked[1].body["remark"] == "LookupError: no such order"


def test_a_decision_that_came_first_is_no_failure() -> None:
    with scripted(DUE, problem(409, "transaction_ended", "It is ROLLED_BACK.")) as server:
        assert CheckPoller(producer_of(server), commit).answer_due() == 1


def test_the_thread_outlives_a_busy_broker_and_stops_when_told() -> None:
    answered = threading.Event()

    def check(half: HalfMessage) -> LocalTransactionState:
        answered.set()
        return LocalTransactionState.COMMIT

    with scripted(busy(), DUE, COMMITTED, NOTHING_DUE) as server:
        poller = CheckPoller(producer_of(server), check, wait_seconds=0)
        poller.start()
        assert answered.wait(10)
        poller.stop()

    assert server.asked[2].body["state"] == "COMMIT"
