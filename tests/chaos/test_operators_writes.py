"""A write of an operator while the database falls silent: its answer says what became of it, and comes soon."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import psycopg
import pytest

from tests.actions.conftest import PASSWORD, made_at
from tests.broker import characters
from tests.broker.database_proxy import DatabaseProxy, Silence
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Answer
from tests.console.operators import Operator as Visitor
from tests.console.operators import Page
from tests.control.operators import Operator
from tests.control.stock import Request, Stock

PROMISED_SECONDS = 5.0
# What a producer or a consumer writes, and a trial, which writes nothing. Each other write is an operator's.
OF_MESSAGES = {
    "POST /v1/messages",
    "POST /v1/messages/batch",
    "POST /v1/messages/recall",
    "POST /v1/transactions",
    "POST /v1/transactions/{transaction_id}/end",
    "POST /v1/producer-groups/{group}/checks/receive",
    "POST /v1/producer-groups/{group}/endpoints/{endpoint_id}/test",
    "POST /v1/bulk",
    "POST /v1/consumer-groups/{group}/receive",
    "POST /v1/consumer-groups/{group}/ack",
    "POST /v1/consumer-groups/{group}/nack",
    "POST /v1/consumer-groups/{group}/extend",
    "POST /v1/consumer-groups/{group}/return",
}
# Written by the group commit, on one connection of each process; the others on a connection of Django's each.
OF_THE_WRITER = ("/offsets", "/redrive", "/resume", "/resolve", "/check")
STORED = "SELECT count(*) FROM audit_entry WHERE request_id = %s AND result IN ('done', 'unchanged')"
WEBS = 2
# As many as Django's pools of the web processes have connections.
AT_ONCE = 4 * WEBS


class Outcome(NamedTuple):
    """The answer to a write, when it came, and whether the write is stored: its entry of the audit is with it."""

    answer: Answer
    seconds: float
    is_stored: bool


@pytest.fixture(scope="module")
def distant(proxy: DatabaseProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose database is behind the proxy."""
    folder = tmp_path_factory.mktemp("distant")
    with RunningBroker(folder, proxy.url, os.environ["REDIS_URL"], webs=WEBS, tasks=False) as running:
        yield running


@pytest.fixture(scope="module")
def stock(distant: RunningBroker) -> Stock:
    return Stock(distant)


@pytest.fixture(scope="module")
def labels(distant: RunningBroker) -> list[str]:
    """Every write of an operator that the API has."""
    paths = Operator(distant.url, API_KEY).reads("/v1/schema")["paths"]
    writes = [f"{method.upper()} {path}" for path, found in paths.items() for method in found if method != "get"]
    return [label for label in writes if label not in OF_MESSAGES]


def rounds(labels: list[str]) -> list[list[str]]:
    """The labels in rounds, of which each takes a connection once."""
    of_writer = [label for label in labels if label.endswith(OF_THE_WRITER)]
    others = [label for label in labels if label not in of_writer]
    found = []
    while of_writer or others:
        here, of_writer = of_writer[:WEBS], of_writer[WEBS:]
        there, others = others[: AT_ONCE - WEBS], others[AT_ONCE - WEBS :]
        found.append([*here, *there])
    return found


def asked(operator: Operator, label: str, request: Request) -> tuple[Answer, float]:
    method, _, template = label.partition(" ")
    began = time.monotonic()
    answer = operator.asks(method, template.format(**request.path), request.body)
    return answer, time.monotonic() - began


def outcomes(
    broker: RunningBroker, proxy: DatabaseProxy, requests: list[tuple[str, Request]], silence: Silence
) -> dict[str, Outcome]:
    """What becomes of each of these writes, where the database falls silent to each at the same place."""
    operators = [Operator(url, API_KEY) for url in broker.urls]
    try:
        proxy.silence = silence
        with ThreadPoolExecutor(AT_ONCE) as callers:
            calls = [
                (label, callers.submit(asked, operators[number % len(operators)], label, request))
                for number, (label, request) in enumerate(requests)
            ]
            answers = [(label, *call.result()) for label, call in calls]
    finally:
        proxy.silence = None
        proxy.cut()
    eventually(lambda: all(operator.get("/v1/topics").status == 200 for operator in operators), within_seconds=20)
    with psycopg.connect(proxy.url) as connection:
        return {
            label: Outcome(answer, seconds, is_stored(connection, answer.headers["x-request-id"]))
            for label, answer, seconds in answers
        }


def is_stored(connection: psycopg.Connection, request_id: str) -> bool:
    found = connection.execute(STORED, [request_id]).fetchone()
    return found is not None and found[0] > 0


def lies(found: dict[str, Outcome]) -> list[str]:
    """The answers that say what is not so, or come late."""
    promised = at_this_load(PROMISED_SECONDS)
    return [
        f"{label}: {outcome.answer.status} {outcome.answer.document} after {outcome.seconds:.1f} s, "
        f"and it is {'' if outcome.is_stored else 'not '}stored"
        for label, outcome in found.items()
        if outcome.seconds >= promised or not is_true(outcome)
    ]


def is_true(outcome: Outcome) -> bool:
    if outcome.answer.status < 300:
        return outcome.is_stored
    code = outcome.answer.problem["code"]
    return code == "outcome_unknown" or (code == "system_busy" and not outcome.is_stored)


@pytest.mark.parametrize("silence", ["before the commit", "during the commit", "after the commit"])
def test_an_operators_write_is_answered_by_what_became_of_it(
    distant: RunningBroker, proxy: DatabaseProxy, stock: Stock, labels: list[str], silence: Silence
) -> None:
    found: dict[str, Outcome] = {}
    for some in rounds(labels):
        found |= outcomes(distant, proxy, [(label, stock.request(label)) for label in some], silence)

    assert lies(found) == []
    stored = {label for label, outcome in found.items() if outcome.is_stored}
    if silence == "before the commit":
        assert stored == set()
    else:
        # The others met a session that had fallen silent to an earlier one.
        assert len(stored) > len(labels) / 2


def test_what_is_shown_once_is_shown_although_the_database_falls_silent_behind_the_commit(
    distant: RunningBroker, proxy: DatabaseProxy, stock: Stock
) -> None:
    name = characters.name("shown")
    path = {"name": name, "topic": name}
    requests = [
        ("PUT /v1/topics/{topic}", Request({"queues": 2}, path)),
        ("POST /v1/api-keys", stock.request("POST /v1/api-keys")),
        ("PUT /v1/subscriptions/{name}", Request(stock.push(), path)),
    ]

    found: dict[str, Outcome] = {}
    for request in requests:
        found |= outcomes(distant, proxy, [request], "after the commit")

    assert [outcome.answer.status for outcome in found.values()] == [201, 201, 201]
    topic, key, subscription = (outcome.answer.document for outcome in found.values())
    assert [queue["queue_id"] for queue in topic["offsets"]] == [0, 1]
    assert Operator(distant.url, key["key"]).get("/v1/stats").status == 200
    assert subscription["secret"].startswith("whsec_")


def test_a_bulk_waits_once_for_a_database_that_is_silent(
    distant: RunningBroker, proxy: DatabaseProxy, stock: Stock
) -> None:
    """Its groups are looked up, then its first operations are written, then those that follow from them."""
    operations = [
        {"op": op, "producer_group": characters.name("group"), "transaction_id": transaction_id, **fields}
        for transaction_id in ("019c0000-0000-7000-8000-00000000b01c", "019c0000-0000-7000-8000-00000000b02c")
        for op, fields in (("half", {"topic": stock.name, "body": "order"}), ("end", {"state": "COMMIT"}))
    ]
    assert Operator(distant.url, API_KEY).bulk({"op": "send", "topic": stock.name, "body": "order"})

    proxy.swallow(packets=True)
    try:
        request = Request({"operations": operations})
        answer, seconds = asked(Operator(distant.url, API_KEY), "POST /v1/bulk", request)
    finally:
        proxy.swallow(packets=False)

    assert seconds < at_this_load(PROMISED_SECONDS)
    results = answer.document["results"] if answer.status == 200 else [answer.document] * 4
    assert [result["code"] for result in results] == ["system_busy"] * 4


FORMS: dict[str, dict[str, object]] = {
    "actions/once/": {"action": "key.make", "scopes": "read:*", "reason": "a new shop"},
    "actions/new/": {"action": "topic.make", "queues": "2", "permission": "rw", "reason": "a new shop"},
}
ASKED = """
SELECT (SELECT count(*) FROM audit_entry WHERE target = %(target)s AND result = 'done')
     + (SELECT count(*) FROM action WHERE targets ? %(target)s)
"""


@pytest.fixture(scope="module")
def ada(distant: RunningBroker) -> Visitor:
    """An admin who is signed in to the console."""
    return made_at(distant)["ada"]


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("silence", ["before the commit", "during the commit", "after the commit"])
def test_a_form_of_the_console_is_answered_by_what_became_of_it(
    distant: RunningBroker, proxy: DatabaseProxy, ada: Visitor, path: str, silence: Silence
) -> None:
    target = characters.name("asked")

    page, seconds = silenced(distant, proxy, silence, lambda: ada.posts(path, {**FORMS[path], "target": target}))

    assert seconds < at_this_load(PROMISED_SECONDS)
    with psycopg.connect(proxy.url) as connection:
        found = connection.execute(ASKED, {"target": target}).fetchone()
    assert found is not None
    assert bool(found[0]) == (silence != "before the commit")
    assert "nothing was stored" not in page.text
    assert page.status == (200 if silence == "after the commit" else 503)
    assert ('id="secret"' in page.html) == (page.status == 200 and path == "actions/once/")


def test_a_form_waits_once_for_a_database_that_is_silent(
    distant: RunningBroker, proxy: DatabaseProxy, ada: Visitor
) -> None:
    """Its session is read first, and again for the answer."""

    def asks() -> Page:
        proxy.swallow(packets=True)
        try:
            return ada.posts("actions/once/", {**FORMS["actions/once/"], "target": characters.name("asked")})
        finally:
            proxy.swallow(packets=False)

    page, seconds = silenced(distant, proxy, None, asks)

    assert seconds < at_this_load(PROMISED_SECONDS)
    assert (page.status, "nothing was stored" in page.text) == (503, True)


def test_a_sign_in_that_is_lost_says_so(distant: RunningBroker, proxy: DatabaseProxy, ada: Visitor) -> None:
    def signs_in() -> Page:
        visitor = Visitor(distant.url)
        visitor.sees("login/")
        proxy.silence = "during the commit"
        return visitor.posts("login/", {"username": "oda", "password": PASSWORD, "next": "/console/"})

    page, seconds = silenced(distant, proxy, None, signs_in)

    assert seconds < at_this_load(PROMISED_SECONDS)
    assert (page.status, "the change may be stored" in page.text) == (503, True)


def silenced(
    broker: RunningBroker, proxy: DatabaseProxy, silence: Silence | None, act: Callable[[], Page]
) -> tuple[Page, float]:
    """The page that answers while connections fall silent, and after how many seconds."""
    proxy.silence = silence
    began = time.monotonic()
    try:
        page = act()
        seconds = time.monotonic() - began
    finally:
        proxy.silence = None
        proxy.cut()
    eventually(lambda: Operator(broker.url, API_KEY).get("/v1/topics").status == 200, within_seconds=20)
    return page, seconds
