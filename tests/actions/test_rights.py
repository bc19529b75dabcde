"""An action goes on only while a user whose role allows it stands behind it: its author, or one who continued it."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from mqbroker.embedded import commands
from tests.actions.conftest import PASSWORD, id_of, made_at
from tests.actions.test_action_jobs import begins, pending, rolls_back, steers
from tests.broker import databases, forks
from tests.broker.polling import eventually
from tests.broker.running import QUICK, RunningBroker
from tests.conftest import REDIS_URL
from tests.console.operators import Operator, Page
from tests.control.audits import Audit

STATES = {
    "demoted": "the console user 'demoted' is viewer now",
    "deactivated": "the console user 'deactivated' is not active any more",
    "deleted": "the console user 'deleted' does not exist any more",
    "active": "",
}
USERS = f"""
from access import roles
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
password = make_password("{PASSWORD}")
for name in {tuple(STATES)}:
    roles.assign(User.objects.create(username=name, password=password), "operator", bodies=False)
"""


@pytest.fixture(scope="module")
def web(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One web process, whose poller leaves an action to others for 3 s: time for its author to lose a role."""
    settings = {**QUICK, "MQBROKER_TRANSACTION_TIMEOUT_SECONDS": "3600"}
    folder: Path = tmp_path_factory.mktemp("rights")
    with databases.copied(prepared) as url, RunningBroker(folder, url, REDIS_URL, settings, tasks=False) as running:
        yield running


@pytest.fixture(scope="module")
def people(web: RunningBroker) -> dict[str, Operator]:
    """An admin, an operator and a viewer, and four operators who are named by what becomes of them."""
    words = commands.manage("shell", "--verbosity", "0", "--command", USERS)
    forks.run(words, web.environment).check_returncode()
    return {**made_at(web), **{name: Operator.signed_in(web.url, name, PASSWORD) for name in STATES}}


@pytest.fixture
def entries(web: RunningBroker) -> Iterator[Audit]:
    with psycopg.connect(web.database_url, autocommit=True, row_factory=dict_row) as connection:
        yield Audit(connection)


def change(admin: Operator, action: str, name: str, **values: object) -> None:
    """Has an admin change or delete a user."""
    page = admin.posts("actions/new/", {"action": action, "target": name, "reason": "of a test", **values})
    assert page.table("results")[0][-2] == "done", page.text


def paused(owner: Operator, action: Page) -> Page:
    """The page of an action once the broker has paused it."""
    path = f"actions/{id_of(action)}/"
    eventually(lambda: owner.sees(path).figure("state") == "paused", within_seconds=30)
    return owner.sees(path)


@pytest.mark.timeout(120)
def test_an_action_stops_when_its_author_loses_the_role_and_says_why(
    web: RunningBroker, people: dict[str, Operator], entries: Audit
) -> None:
    ada, oda = people["ada"], people["oda"]
    for name in STATES:
        begins(web, name, 1)

    asked = {name: rolls_back(people[name], name) for name in STATES}
    change(ada, "user.change", "demoted", role="viewer")
    change(ada, "user.change", "deactivated", active="no")
    change(ada, "user.delete", "deleted")

    eventually(lambda: pending(web, "active") == 0, within_seconds=30)
    for name, reason in STATES.items():
        if name != "active":
            page = paused(oda, asked[name])
            assert f"its user has lost the right to do it (transaction.rollback): {reason}" in page.text
            assert "A user with the role operator may continue the action under their own name" in page.text
            assert pending(web, name) == 1
            [entry] = [one for one in entries.of(id_of(page)) if one["action"] == "action.step"]
            assert (entry["author"], entry["result"]) == (name, "no_permission")


@pytest.mark.timeout(120)
def test_a_stopped_action_is_taken_over_by_the_operator_who_continues_it(
    web: RunningBroker, people: dict[str, Operator], entries: Audit
) -> None:
    oda, group = people["oda"], "taken-over"
    begins(web, group, 1)
    action = rolls_back(oda, group)
    # As the action of a user who was deleted: what is read of an author is a name.
    entries.connection.execute("UPDATE action SET author = 'gone' WHERE id = %s", (id_of(action),))
    paused(oda, action)

    assert steers(people["vic"], action, "continue").status == 403
    page = steers(oda, action, "continue")
    eventually(lambda: pending(web, group) == 0, within_seconds=30)

    assert "gone, continued by oda" in page.text
    assert "Paused by the broker" not in page.text
    assert {entry["author"] for entry in entries.by_action(id_of(action))} == {"oda"}


@pytest.mark.timeout(120)
def test_an_operator_pauses_an_admins_action_and_only_an_admin_continues_it(
    web: RunningBroker, people: dict[str, Operator], entries: Audit
) -> None:
    ada, oda, action_id = people["ada"], people["oda"], "0190f7c2-0000-7000-8000-000000000002"
    web.wire().call("PUT", "/v1/topics/kept", b"{}")
    # An admin's action that its first step could not do, as it is while the database is busy.
    entries.connection.execute(
        "INSERT INTO action (id, kind, targets, parameters, state, total, author, reason) "
        "VALUES (%s, 'topic.delete', '[\"kept\"]', '{}', 'running', 1, 'ada', 'of a test')",
        (action_id,),
    )

    stopped = oda.posts(f"actions/{action_id}/steer/", {"to": "pause"})
    refused = oda.posts(f"actions/{action_id}/steer/", {"to": "continue"})

    assert (stopped.figure("state"), "Continue" in stopped.text, "Cancel" in stopped.text) == ("paused", False, True)
    assert refused.status == 403
    assert "The console user 'oda' is operator and may not do this (topic.delete): sign in as admin" in refused.text
    assert web.wire().get("/v1/topics/kept").status == 200
    assert ada.posts(f"actions/{action_id}/steer/", {"to": "continue"}).figure("state") == "running"
    eventually(lambda: web.wire().get("/v1/topics/kept").status == 404, within_seconds=30)
