"""A cell whose database answers nothing: a change of the configuration is refused in time, and the rest goes on."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.broker import databases
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Answer
from tests.cells.installation import Installation
from tests.control.operators import Operator

HANGS_SECONDS = 7.0
CALLERS = 5
# The second is that of the sends whose commit was under way.
HUNG = {(503, "cell_away"), (503, "outcome_unknown")}


@pytest.fixture(scope="module")
def proxy() -> Iterator[DatabaseProxy]:
    """A network in front of an empty database."""
    with databases.fresh() as url, DatabaseProxy(url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def installation(
    prepared: str, proxy: DatabaseProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """A running broker with a cell behind the network."""
    folder: Path = tmp_path_factory.mktemp("hanging")
    with databases.copied(prepared) as control:
        found = Installation(RunningBroker(folder, control, os.environ["REDIS_URL"], tasks=False))
        found.add("c1", proxy.url)
        with found.broker:
            yield found
        assert "Traceback" not in found.broker.log()


@pytest.fixture
def operator(installation: Installation) -> Operator:
    """An operator's way to the broker."""
    return Operator(installation.broker.url, API_KEY)


def send(operator: Operator, topic: str) -> Answer:
    return operator.post("/v1/messages", {"topic": topic, "body": "message 1"})


def test_a_change_is_refused_within_5_s_while_a_cell_hangs_and_messages_flow(
    installation: Installation, operator: Operator, proxy: DatabaseProxy
) -> None:
    operator.put("/v1/topics/known")
    proxy.swallow(packets=True)
    try:
        began = time.monotonic()
        changed = operator.put("/v1/topics/known", queues=8)
        first_used = send(operator, "first-used")
        took = time.monotonic() - began
        known = send(operator, "known")
    finally:
        proxy.swallow(packets=False)

    assert [(answer.status, answer.document["code"]) for answer in (changed, first_used)] == [(503, "cell_away")] * 2
    assert took < at_this_load(10)
    assert known.status == 201
    assert operator.get("/v1/topics/known").document["queues"] == 4


def test_a_cell_that_hangs_for_a_second_is_refused_at_once_but_for_one_send_that_tries_it(
    installation: Installation, operator: Operator, proxy: DatabaseProxy
) -> None:
    installation.run("open", "c1")
    operator.put("/v1/topics/hanging")
    installation.run("open", "c0")
    operator.put("/v1/topics/beside")
    assert [send(operator, topic).status for topic in ("hanging", "beside")] == [201, 201]
    until = time.monotonic() + HANGS_SECONDS
    proxy.swallow(packets=True)
    try:
        with ThreadPoolExecutor(CALLERS) as pool:
            callers = [pool.submit(timed_sends, operator, "hanging", until) for _ in range(CALLERS - 1)]
            beside = pool.submit(timed_sends, operator, "beside", until).result()
            hanging = [sent for caller in callers for sent in caller.result()]
    finally:
        proxy.swallow(packets=False)
    refused = [took for took, answer in hanging if "has not answered for 1 s" in answer.document["detail"]]

    assert {answer.status for _, answer in beside} == {201}
    assert max(took for took, _ in beside) < at_this_load(1)
    # The callers that were there as it began to hang, and one for each time that it was tried.
    assert len(hanging) - len(refused) <= CALLERS + 2
    assert len(refused) > 20
    assert max(refused) < at_this_load(1)
    assert {(answer.status, answer.document["code"]) for _, answer in hanging} <= HUNG
    eventually(lambda: send(operator, "hanging").status == 201)


def timed_sends(operator: Operator, topic: str, until: float) -> list[tuple[float, Answer]]:
    """Sends to a topic one after another until a time: how long each took, and its answer."""
    found = []
    while (began := time.monotonic()) < until:
        answer = send(operator, topic)
        found.append((time.monotonic() - began, answer))
    return found


def test_what_a_cell_has_stored_of_a_change_that_was_refused_gives_way_to_the_next_one(
    installation: Installation, operator: Operator, proxy: DatabaseProxy
) -> None:
    proxy.silence = "during the commit"
    try:
        refused = operator.put("/v1/topics/torn", queues=2)
    finally:
        proxy.silence = None

    assert (refused.status, refused.document["code"]) == (503, "cell_away")
    assert operator.get("/v1/topics/torn").status == 404
    assert installation.state("c1") == "1 rows of configuration differ from the control's: `cells sync c1` copies them"
    assert operator.put("/v1/topics/torn", queues=3).status == 201
    assert installation.differences("c1") == {}
