"""Producers that cannot be called fetch their checks and answer them."""

import sys
import threading
import time

import pytest
from mqbroker_client import Broker, CheckPoller, HalfMessage, LocalTransactionState, Producer, Retry
from mqbroker_client.aio import AsyncBroker, AsyncCheckPoller, AsyncProducer
from mqbroker_client.core.ids import uuid7

from tests.broker.polling import at_this_load
from tests.client.answers import CHECK, COMMITTED, STILL_PREPARED, TRANSACTION_ID, problem
from tests.client.servers import Answer, HangUp, ScriptedServer, Silence, Step, busy, scripted

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


def test_a_check_that_exits_is_answered_unknown_and_the_thread_goes_on() -> None:
    def leave(half: HalfMessage) -> LocalTransactionState:
        sys.exit("no such order")

    with scripted(DUE, STILL_PREPARED, DUE, STILL_PREPARED, NOTHING_DUE) as server:
        poller = CheckPoller(producer_of(server), leave, wait_seconds=0)
        poller.start()
        server.wait_for(requests=4)
        poller.stop()

    assert [asked.body["remark"] for asked in server.asked[1:4:2]] == ["RuntimeError: SystemExit: no such order"] * 2


async def test_a_check_that_exits_ends_no_event_loop() -> None:
    def leave(half: HalfMessage) -> LocalTransactionState:
        sys.exit("no such order")

    with scripted(DUE, STILL_PREPARED) as server:
        async with AsyncBroker(server.url, "mq_key") as broker:
            await AsyncCheckPoller(AsyncProducer(broker, "shop"), leave).answer_due()

    assert server.asked[1].body["remark"] == "RuntimeError: SystemExit: no such order"


def test_an_exit_of_the_main_thread_ends_its_check() -> None:
    """A signal's handler may have raised it: a process that answers checks has to end."""

    def leave(half: HalfMessage) -> LocalTransactionState:
        sys.exit(3)

    with scripted(DUE) as server, pytest.raises(SystemExit):
        CheckPoller(producer_of(server), leave).answer_due()


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
        assert answered.wait(120)
        poller.stop()

    assert server.asked[2].body["state"] == "COMMIT"


@pytest.mark.parametrize("broker_is", [Silence(), busy(retry_after="60")])
def test_a_stop_waits_for_no_long_poll_and_for_no_pause(broker_is: Silence | Answer) -> None:
    with scripted(broker_is) as server:
        poller = CheckPoller(producer_of(server), commit, wait_seconds=20)
        poller.start()
        server.wait_for(requests=1)
        began = time.monotonic()
        poller.stop()
        took = time.monotonic() - began

    # It takes a tenth of a second; the poll and the pause would take 20 s and 1 s.
    assert took < at_this_load(0.9)
    assert len(server.asked) == 1


def test_a_stop_lets_the_check_under_way_be_answered_and_begins_no_other() -> None:
    checking, stopped = threading.Event(), threading.Event()

    def check(half: HalfMessage) -> LocalTransactionState:
        checking.set()
        assert stopped.wait(120)
        return LocalTransactionState.COMMIT

    two = Answer(200, {"transactions": [CHECK, CHECK]})
    with scripted(two, COMMITTED) as server:
        poller = CheckPoller(producer_of(server), check)
        poller.start()
        assert checking.wait(120)
        poller.stop(timeout_seconds=0)
        stopped.set()
        poller.stop()

    assert [asked.path for asked in server.asked][1:] == [f"/v1/transactions/{TRANSACTION_ID}/end"]
    assert server.asked[1].body["state"] == "COMMIT"


@pytest.mark.parametrize(
    ("step", "level"), [(HangUp(), "WARNING"), (problem(401, "unauthenticated", "The API key is unknown."), "ERROR")]
)
def test_a_fetch_that_fails_is_one_line_of_the_log_at_each_try(
    caplog: pytest.LogCaptureFixture, step: Step, level: str
) -> None:
    with scripted(step, Silence()) as server:
        poller = CheckPoller(producer_of(server), commit)
        poller.start()
        server.wait_for(requests=2)
        poller.stop()

    [record] = [record for record in caplog.records if "were not fetched" in record.message]
    assert (record.levelname, record.exc_info) == (level, None)


def test_a_stop_leaves_the_producers_other_requests_alone() -> None:
    with scripted(Silence(), Silence(), COMMITTED) as server:
        producer = Producer(Broker(server.url, "mq_key", retry=Retry(tries=2, seconds=3)), "shop")
        poller = CheckPoller(producer, commit)
        poller.start()
        server.wait_for(requests=1)
        ended: list[str] = []
        ending = threading.Thread(
            target=lambda: ended.append(producer.end(uuid7(), LocalTransactionState.COMMIT).state)
        )
        ending.start()
        server.wait_for(requests=2)
        poller.stop()
        assert ended == []
        ending.join()

    assert ended == ["COMMITTED"]
