"""The console's page of namespaces, and the lists that it narrows."""

import html
import json
import re
from urllib.parse import quote

import psycopg
import pytest

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.console.operators import Operator as ConsoleUser
from tests.control.operators import Operator
from tests.namespaces.teams import CONSUMERS, PRODUCERS, TOPIC, Team

RECORDED = """
INSERT INTO history_figure (figure, name, minute, value)
VALUES (%s, %s, date_trunc('minute', now()) - interval '10 minutes', %s) ON CONFLICT DO NOTHING
"""
LAGS = "SELECT name, value FROM history_figure WHERE figure = 'namespace_lag' AND name = ANY(%s)"


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


def test_the_overview_is_narrowed_to_a_namespace(admin: ConsoleUser, ours: Team, theirs: Team) -> None:
    for team, sends, pending in ((ours, 3, 1), (theirs, 5, 4)):
        for _ in range(sends):
            team.sends()
        for _ in range(pending):
            team.begins()
        team.ends(team.begins())
        team.receives(count=1)
    theirs.ends(theirs.begins(), "ROLLBACK")

    shown = admin.sees(f"?namespace={ours.namespace}")

    figures = {name: shown.figure(name) for name in ("pending-halves", "committed", "rolled-back", "entries")}
    assert figures == {"pending-halves": "1", "committed": "1", "rolled-back": "0", "entries": "4"}
    assert [row[0] for row in shown.table("consumer-groups") if row] == [f"{ours.namespace}%{CONSUMERS}"]
    # The name of the other one is offered, and stands nowhere else.
    assert shown.text.count(theirs.namespace) == 1
    # What is of the whole broker is left out.
    assert not {"stored", "delayed", "checks"} & set(re.findall(r'id="([a-z-]+)"', shown.html))
    assert f"namespace={ours.namespace}" in " ".join(shown.links.values())


def test_what_needs_attention_is_narrowed_to_a_namespace(
    admin: ConsoleUser, operator: Operator, ours: Team, theirs: Team
) -> None:
    for team in (ours, theirs):
        operator.put(f"/v1/topics/{quote(f'{team.namespace}%{TOPIC}')}", sends_from="2199-01-01T00:00:00Z")

    shown = admin.sees(f"?namespace={ours.namespace}")

    assert f"{ours.namespace}%{TOPIC} takes no messages until 2199" in shown.text
    assert f"{theirs.namespace}%{TOPIC} takes no messages" not in shown.text


def test_the_charts_are_narrowed_to_a_namespace(admin: ConsoleUser, broker: RunningBroker, ours: Team) -> None:
    with psycopg.connect(broker.database_url, autocommit=True) as connection:
        for figure, name, value in (
            ("stored", "", 9.0),
            ("namespace_in", ours.namespace, 3.0),
            ("namespace_lag", ours.namespace, 7.0),
            ("in", "", 1000.0),
            ("topic_in", f"{ours.namespace}%{TOPIC}", 3.0),
            ("topic_in", "elsewhere%orders", 500.0),
        ):
            connection.execute(RECORDED, [figure, name, value])

    shown = admin.sees(f"charts/?namespace={ours.namespace}")

    points = {one for data in re.findall(r'data-value="([^"]+)" data-options', shown.html) for one in numbers(data)}
    assert {3.0, 7.0} <= points <= {0.0, 3.0, 7.0}
    assert f"{ours.namespace}%{TOPIC}" in shown.html
    assert "elsewhere%orders" not in shown.html


def numbers(data: str) -> set[float]:
    """The points of a chart."""
    lines = json.loads(html.unescape(data))["datasets"]
    return {value for line in lines for value in line["data"] if value is not None}


def test_a_minute_of_the_history_has_the_sums_of_each_namespace(
    broker: RunningBroker, ours: Team, theirs: Team
) -> None:
    for team, count in ((ours, 2), (theirs, 5)):
        for _ in range(count):
            team.sends()
        team.acks(team.receives(count=1))
    with psycopg.connect(broker.database_url, autocommit=True) as connection:
        # The next look of a process finds no minute, and records this one.
        connection.execute("DELETE FROM history_figure")
        connection.execute("DELETE FROM history_counters")

    def lags() -> dict[str, float]:
        with psycopg.connect(broker.database_url, autocommit=True) as connection:
            rows = connection.execute(LAGS, [[ours.namespace, theirs.namespace]]).fetchall()
        return dict(rows)

    eventually(lambda: lags() == {ours.namespace: 1.0, theirs.namespace: 4.0})
