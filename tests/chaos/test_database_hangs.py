"""A database that hangs breaks no connection and says nothing: callers are answered all the same, and soon."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.broker import characters
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Answer, Wire

# Promised are 5 s; on a machine that does other work beside the tests, the answer may need a moment to be read.
PROMISED_SECONDS = 5.0
CALLS: dict[str, tuple[str, str, Any]] = {
    "a send": ("POST", "/v1/messages", {"topic": "orders", "body": "order"}),
    "a batch": ("POST", "/v1/messages/batch", {"topic": "orders", "messages": [{"body": "a"}, {"body": "b"}]}),
    "a half message": ("POST", "/v1/transactions", {"topic": "orders", "body": "order", "producer_group": "shop"}),
    "a receive": ("POST", "/v1/consumer-groups/coupons/receive", {"topic": "orders"}),
    "a pull": ("GET", "/v1/topics/orders/queues/0/messages", None),
    "a list": ("GET", "/v1/topics", None),
    "stats": ("GET", "/v1/stats", None),
    "a topic": ("PUT", "/v1/topics/invoices", {"queues": 2}),
    "readiness": ("GET", "/readyz", None),
}


@pytest.fixture(scope="module")
def distant(proxy: DatabaseProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose database is behind the proxy."""
    running = RunningBroker(tmp_path_factory.mktemp("distant"), proxy.url, os.environ["REDIS_URL"], tasks=False)
    with running:
        yield running


def timed(wire: Wire, method: str, path: str, document: Any) -> tuple[Answer, float]:
    began = time.monotonic()
    answer = wire.post(path, document) if method == "POST" else wire.call(method, path, document and b"{}")
    return answer, time.monotonic() - began


def test_every_call_is_answered_503_within_5_seconds_and_all_is_well_afterwards(
    distant: RunningBroker, proxy: DatabaseProxy
) -> None:
    wire = Wire(distant.url, API_KEY)
    before = [timed(wire, *call)[0].status for call in CALLS.values()]
    assert all(status < 300 for status in before), before

    proxy.swallow(packets=True)
    # Each of them three times at once: more than there are connections.
    with ThreadPoolExecutor(3 * len(CALLS)) as callers:
        asked = {name: [callers.submit(timed, wire, *call) for _ in range(3)] for name, call in CALLS.items()}
        found = {name: [one.result() for one in answers] for name, answers in asked.items()}
    while_hung = [timed(wire, *CALLS[name]) for name in ("a send", "a list")]
    proxy.swallow(packets=False)

    late = {name: [round(seconds, 1) for _, seconds in answers] for name, answers in found.items()}
    assert all(seconds < at_this_load(PROMISED_SECONDS) for times in late.values() for seconds in times), late
    assert all(seconds < at_this_load(PROMISED_SECONDS) for _, seconds in while_hung)
    for answer in [*(answer for answers in found.values() for answer, _ in answers), *(one for one, _ in while_hung)]:
        assert answer.status == 503, answer
        assert answer.problem["code"] in ("system_busy", "outcome_unknown")
    eventually(lambda: all(timed(wire, *call)[0].status < 300 for call in CALLS.values()), within_seconds=20)


def test_a_connection_that_the_database_forgets_costs_one_answer(distant: RunningBroker, proxy: DatabaseProxy) -> None:
    """The reply of a commit is lost: the outcome is unknown, and the same request again says what it was."""
    wire = Wire(distant.url, API_KEY)
    message = {"topic": characters.name("orders"), "body": "order"}
    assert wire.post("/v1/messages", message).status == 201
    message["message_id"] = "019c0000-0000-7000-8000-00000000abcd"

    proxy.drops_commits = 1
    lost = wire.post("/v1/messages", message)
    again = wire.post("/v1/messages", message)

    assert (lost.status, lost.problem["code"]) == (503, "outcome_unknown")
    assert (again.status, again.document["duplicate"]) == (200, True)


def test_a_read_behind_a_lock_is_answered_within_5_seconds_with_the_reason(distant: RunningBroker) -> None:
    with psycopg.connect(distant.database_url) as stranger:
        stranger.execute("LOCK TABLE topic IN ACCESS EXCLUSIVE MODE")

        path = f"/v1/topics/{characters.name('unknown')}/queues/0/messages"
        answer, seconds = timed(Wire(distant.url, API_KEY), "GET", path, None)

    assert answer.status == 503
    assert answer.problem["detail"] == (
        "Another session holds a lock in the database: nothing was stored, try again in a second."
    )
    assert seconds < PROMISED_SECONDS
