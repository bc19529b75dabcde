"""Actions on all that match, while they run: paused, continued, cancelled, and taken up again after a kill."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.actions.conftest import id_of, made_at
from tests.broker import databases
from tests.broker.polling import eventually
from tests.broker.running import QUICK, RunningBroker
from tests.conftest import REDIS_URL
from tests.console.operators import Operator, Page
from tests.control.audits import Audit

# Five steps, and a kill or a pause falls between their begin and their end.
TARGETS = 5000
BULK = 1000


@pytest.fixture(scope="module")
def web(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One web process, whose poller runs the actions: no worker, no beat."""
    lasting = {"MQBROKER_TRANSACTION_TIMEOUT_SECONDS": "3600", "MQBROKER_SECRET_KEY": "sessions that outlive a kill"}
    settings = {**QUICK, **lasting}
    with databases.copied(prepared) as url:
        folder: Path = tmp_path_factory.mktemp("jobs")
        with RunningBroker(folder, url, REDIS_URL, settings, tasks=False) as running:
            yield running


@pytest.fixture(scope="module")
def owen(web: RunningBroker) -> Operator:
    """An operator at this broker."""
    return made_at(web)["oda"]


@pytest.fixture
def entries(web: RunningBroker) -> Iterator[Audit]:
    """The audit of this broker."""
    with psycopg.connect(web.database_url, autocommit=True, row_factory=dict_row) as connection:
        yield Audit(connection)


def rolls_back(owen: Operator, group: str) -> Page:
    """The page of an action that rolls back all that a producer group has pending."""
    form: dict[str, Any] = {"action": "transaction.rollback", "all": "1", "producer_group": group, "reason": "a test"}
    page = owen.posts("actions/new/", form)
    assert page.figure("state") == "running", page.text
    return page


def begins(web: RunningBroker, group: str, count: int) -> None:
    """Half messages of a producer group."""
    half = {"op": "half", "topic": "orders", "body": "order", "producer_group": group}
    for _ in range(0, count, BULK):
        results = web.wire().bulk(*([half] * min(BULK, count)))
        assert {one["status"] for one in results} == {201}


def pending(web: RunningBroker, group: str) -> int:
    """How many transactions of a group are not ended."""
    found: int = web.wire().get(f"/v1/producer-groups/{group}").document["pending"]
    return found


def state(owen: Operator, page: Page) -> str:
    """The state of an action."""
    return owen.sees(f"actions/{id_of(page)}/").figure("state")


def steers(owen: Operator, page: Page, way: str) -> Page:
    """Pauses, continues or cancels an action."""
    return owen.posts(f"actions/{id_of(page)}/steer/", {"to": way})


def has_begun(entries: Audit, page: Page) -> bool:
    """Whether an action has its first results."""
    return bool(entries.by_action(id_of(page)))


@pytest.mark.timeout(300)
def test_a_running_action_is_paused_and_continued(web: RunningBroker, owen: Operator, entries: Audit) -> None:
    begins(web, "shop", TARGETS)
    begins(web, "kiosk", 1)
    action = rolls_back(owen, "shop")
    eventually(lambda: has_begun(entries, action), within_seconds=60)

    assert steers(owen, action, "pause").figure("state") == "paused"
    # A younger action comes after it, so that it is done shows that the paused one was passed over.
    later = rolls_back(owen, "kiosk")
    eventually(lambda: state(owen, later) == "done", within_seconds=60)
    left = pending(web, "shop")
    done = {entry["target"] for entry in entries.by_action(id_of(action))}

    assert 0 < left < TARGETS
    assert len(done) == TARGETS - left
    assert steers(owen, action, "continue").figure("state") == "running"
    eventually(lambda: state(owen, action) == "done", within_seconds=120)
    assert pending(web, "shop") == 0
    assert len(entries.by_action(id_of(action))) == TARGETS


@pytest.mark.timeout(300)
def test_a_cancelled_action_leaves_the_rest_alone(web: RunningBroker, owen: Operator, entries: Audit) -> None:
    begins(web, "bank", TARGETS)
    begins(web, "stall", 1)
    action = rolls_back(owen, "bank")
    eventually(lambda: has_begun(entries, action), within_seconds=60)

    cancelled = steers(owen, action, "cancel")
    later = rolls_back(owen, "stall")
    eventually(lambda: state(owen, later) == "done", within_seconds=60)

    assert cancelled.figure("state") == "cancelled"
    assert 0 < pending(web, "bank") < TARGETS
    refused = steers(owen, action, "continue")
    assert (refused.status, "accepts nothing, not continue" in refused.text) == (422, True)
    steering = [(one["author"], one["before"], one["after"]) for one in entries.of(id_of(action)) if one["before"]]
    assert steering == [("oda", {"state": "running"}, {"state": "cancelled"})]


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_an_action_survives_a_kill_and_changes_nothing_twice(
    web: RunningBroker, owen: Operator, entries: Audit
) -> None:
    begins(web, "depot", TARGETS)
    action = rolls_back(owen, "depot")
    eventually(lambda: has_begun(entries, action), within_seconds=60)

    web.webs[0].kill()
    done_before = len(entries.by_action(id_of(action)))
    web.webs[0].start()
    web.wait_until_ready()
    eventually(lambda: state(owen, action) == "done", within_seconds=120)

    assert done_before < TARGETS
    results = entries.by_action(id_of(action))
    assert {entry["result"] for entry in results} == {"done"}
    assert len(results) == len({entry["target"] for entry in results}) == TARGETS
    assert pending(web, "depot") == 0
