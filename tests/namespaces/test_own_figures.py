"""A key that is bound to a namespace reads the figures of its own topics and groups, and none of anybody else's."""

import re
from collections.abc import Mapping
from functools import partial
from urllib.parse import quote

import pytest

from mqbroker.embedded.commands import ROOT
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.control.operators import Operator
from tests.namespaces.teams import CONSUMERS, PRODUCERS, TOPIC, Team

SERIES = re.compile(r"^(?P<name>\w+)\{(?P<labels>.*)\} (?P<number>\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
NAMING = {"topic", "producer_group", "consumer_group", "group"}
DECIDED = ("halves", "commits", "rollbacks", "discarded")
ACCESS = (ROOT / "docs" / "access.md").read_text(encoding="utf-8")


def trade(team: Team, sends: int, commits: int, rollbacks: int, pending: int) -> None:
    """The traffic of a team."""
    for _ in range(sends):
        team.sends()
    for state, count in (("COMMIT", commits), ("ROLLBACK", rollbacks)):
        for _ in range(count):
            team.ends(team.begins(), state)
    for _ in range(pending):
        team.begins()


def figures(caller: Operator) -> dict[str, Mapping[str, int]]:
    """The numbers of each stretch of time, without rates."""
    stats = caller.reads("/v1/stats")
    windows = {name: stats[name] for name in ("last_minute", "last_hour")}
    counts = {
        window: {name: one["count"] for name, one in found.items() if isinstance(one, dict)}
        for window, found in windows.items()
    }
    assert stats["missing"] == []
    totals = {name: number for name, number in stats["totals"].items() if name != "estimated"}
    return {"totals": totals, **counts}


def are_read(caller: Operator, expected: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether the caller reads these figures."""
    return figures(caller) == expected


def series(caller: Operator) -> dict[tuple[str, ...], float]:
    """Each series by its metric and its labels, in the order of their names, and its number over all cells."""
    found: dict[tuple[str, ...], float] = {}
    for line in caller.page("/metrics").text.splitlines():
        if not line.startswith("#"):
            parts = SERIES.match(line)
            assert parts is not None, line
            labels = LABEL.findall(parts["labels"])
            assert NAMING & {name for name, _ in labels}, line
            place = (parts["name"], *(value for name, value in labels if name != "cell"))
            found[place] = found.get(place, 0) + float(parts["number"])
    return found


def test_each_team_reads_the_stats_of_its_own_traffic(ours: Team, theirs: Team) -> None:
    trade(ours, sends=3, commits=2, rollbacks=1, pending=1)
    trade(theirs, sends=7, commits=1, rollbacks=0, pending=5)

    for team, numbers in ((ours, (5, 4, 2, 1, 0)), (theirs, (8, 6, 1, 0, 0))):
        expected = dict(zip(("entries", *DECIDED), numbers, strict=True))
        whole = dict.fromkeys(("totals", "last_minute", "last_hour"), expected)
        eventually(partial(are_read, team.calls, whole))


def test_a_caller_that_asks_for_a_namespace_reads_its_stats(ours: Team, theirs: Team, operator: Operator) -> None:
    trade(ours, sends=2, commits=0, rollbacks=0, pending=0)
    trade(theirs, sends=3, commits=0, rollbacks=0, pending=0)

    answered: Document = operator.call("GET", "/v1/stats", headers={"X-Namespace": ours.namespace}).document

    assert answered["totals"]["entries"] == 2
    assert "messages" not in answered["totals"]
    assert operator.reads("/v1/stats")["totals"]["entries"] >= 5


def test_each_team_reads_the_metrics_of_its_own_topics_and_groups(ours: Team, theirs: Team) -> None:
    trade(ours, sends=3, commits=2, rollbacks=1, pending=1)
    trade(theirs, sends=7, commits=1, rollbacks=0, pending=5)
    ours.receives(count=1)

    found = series(ours.calls)

    assert found["mqbroker_entries_total", TOPIC] == 5
    assert found["mqbroker_half_messages", PRODUCERS, "PREPARED"] == 1
    assert found["mqbroker_half_messages_by_topic", "PREPARED", TOPIC] == 1
    ends = [found["mqbroker_transactions_total", end, PRODUCERS, TOPIC] for end in ("committed", "rolled_back")]
    assert ends == [2, 1]
    assert found["mqbroker_consumer_lag", CONSUMERS, TOPIC] == 4
    assert found["mqbroker_deliveries_in_flight", CONSUMERS] == 1
    assert all("%" not in word or word.startswith("%RETRY%") for place in found for word in place)
    assert series(theirs.calls)["mqbroker_half_messages", PRODUCERS, "PREPARED"] == 5


def test_a_group_of_a_team_that_reads_elsewhere_shows_no_number_of_there(
    ours: Team, theirs: Team, operator: Operator
) -> None:
    trade(theirs, sends=7, commits=0, rollbacks=0, pending=0)
    group, topic = f"{ours.namespace}%{CONSUMERS}", f"{theirs.namespace}%{TOPIC}"
    operator.make(f"/v1/consumer-groups/{quote(group)}/receive", topic=topic, max_messages=1, wait_seconds=0)
    whole = operator.page("/metrics").text

    found = series(ours.calls)

    assert f'consumer_group="{group}",topic="{topic}"' in whole
    assert [place for place in found if place[0] == "mqbroker_consumer_lag"] == []


def test_the_page_lists_what_a_bound_key_gets(ours: Team) -> None:
    ours.sends()
    section = ACCESS.partition("### The figures of a namespace")[2].partition("\n## ")[0]
    families = re.findall(r"^# HELP (\w+)", ours.calls.page("/metrics").text, re.MULTILINE)

    assert set(re.findall(r"`(mqbroker_\w+)`", section)) == set(families)
    assert set(re.findall(r"`(\w+)`", section)) >= {"entries", *DECIDED, *families}


@pytest.mark.parametrize("path", ["/v1/stats", "/metrics"])
def test_a_bound_key_needs_the_scope_to_read_figures(
    broker: RunningBroker, operator: Operator, ours: Team, path: str
) -> None:
    without = Team.within(broker, operator, ours.namespace, "produce:*", "consume:*", "read:*")
    measures = Team.within(broker, operator, ours.namespace, "metrics")

    refused = without.calls.page(path)

    assert refused.status == 403
    assert "lacks the scope metrics" in refused.text
    assert measures.calls.page(path).status == 200


def test_a_namespace_whose_name_begins_as_another_is_apart(
    broker: RunningBroker, operator: Operator, ours: Team
) -> None:
    longer = f"{ours.namespace}-2"
    operator.put(f"/v1/namespaces/{longer}")
    other = Team.within(broker, operator, longer)
    trade(other, sends=4, commits=1, rollbacks=0, pending=1)

    assert figures(ours.calls)["totals"] == dict.fromkeys(("entries", *DECIDED), 0)
    assert series(ours.calls) == {}
