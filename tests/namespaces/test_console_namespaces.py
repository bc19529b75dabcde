"""The console's page of namespaces, and the lists that it narrows."""

import pytest

from tests.broker.running import RunningBroker
from tests.console.operators import Operator as ConsoleUser
from tests.control.operators import Operator
from tests.namespaces.teams import CONSUMERS, PRODUCERS, TOPIC, Team


@pytest.fixture
def admin(broker: RunningBroker, password: str) -> ConsoleUser:
    """The first user of the console, an admin."""
    return ConsoleUser.signed_in(broker.url, "admin", password)


def test_the_page_sums_what_each_namespace_has(
    admin: ConsoleUser, operator: Operator, ours: Team, theirs: Team
) -> None:
    for _ in range(2):
        ours.begins()
    for _ in range(3):
        ours.sends()
    ours.acks(ours.receives(count=1))
    theirs.sends()
    operator.put(f"/v1/namespaces/{ours.namespace}", max_topics=7)

    rows = {row[0]: row[1:9] for row in admin.sees(f"namespaces/?q={ours.namespace}").table("namespaces") if row}

    assert rows == {ours.namespace: ["1", "3", "2", "0", "1", "2", "0", "max topics 7"]}
    theirs_row = next(row for row in admin.sees(f"namespaces/?q={theirs.namespace}").table("namespaces") if row)
    assert theirs_row[:4] == [theirs.namespace, "1", "1", "0"]


def test_the_lists_are_narrowed_to_a_namespace(admin: ConsoleUser, ours: Team, theirs: Team) -> None:
    for team in (ours, theirs):
        team.begins()
        team.sends()
        team.acks(team.receives())

    def names(page: str, table: str) -> list[str]:
        shown = admin.sees(f"{page}/?namespace={ours.namespace}")
        assert theirs.namespace not in "".join("".join(row) for row in shown.table(table))
        return [row[0] for row in shown.table(table) if row]

    assert names("topics", "topics") == [f"{ours.namespace}%{TOPIC}"]
    assert names("producer-groups", "producer-groups") == [f"{ours.namespace}%{PRODUCERS}"]
    assert names("consumer-groups", "consumer-groups") == [f"{ours.namespace}%{CONSUMERS}"]
    pending = admin.sees(f"transactions/pending/?namespace={ours.namespace}")
    assert f"{ours.namespace}%{PRODUCERS}" in pending.text
    # An action on all that match is narrowed as the list is.
    assert f"namespace={ours.namespace}" in " ".join(pending.links.values())


def test_a_namespace_is_made_in_the_console(admin: ConsoleUser, operator: Operator, ours: Team) -> None:
    form = {"action": "namespace.make", "target": f"{ours.namespace}-two", "max_topics": "5", "reason": "a new team"}

    admin.posts("actions/new/", dict(form))

    assert operator.reads(f"/v1/namespaces/{ours.namespace}-two")["max_topics"] == 5
