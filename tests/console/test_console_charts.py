"""Promises of the charts over time: each minute is recorded once, and a page draws hours and days of them."""

import html
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from console.monitoring.history.charts import quantile_ms
from console.monitoring.history.figures import rates
from console.monitoring.history.recorder import RECORD_FIGURES
from console.monitoring.requests import BOUNDS
from tests.broker.polling import eventually
from tests.console.operators import Operator, Page
from tests.console.rows import Broker

CANVAS = re.compile(r'data-value="([^"]+)" data-options="([^"]+)" role="img" aria-label="([^"]+)"')
MINUTE = timedelta(minutes=1)


def charts_of(page: Page) -> dict[str, dict[str, dict[str, float | None]]]:
    """The points of each chart of a page, by its title, its line and the label of the point."""
    found = {}
    for value, _, name in CANVAS.findall(page.html):
        data = json.loads(html.unescape(value))
        lines = {of["label"]: dict(zip(data["labels"], of["data"], strict=True)) for of in data["datasets"]}
        found[html.unescape(name).partition(",")[0]] = lines
    return found


def recorded(broker: Broker, ago: timedelta, figures: Mapping[tuple[str, str], float]) -> str:
    """A minute that was recorded so long ago; its label in the chart of an hour."""
    minute = (broker.now - ago).replace(second=0, microsecond=0)
    for (figure, name), value in {("stored", ""): 0.0, **figures}.items():
        broker.insert("history_figure", figure=figure, name=name, minute=minute, value=value)
    return minute.strftime("%H:%M")


def test_a_process_records_each_minute_what_was_stored_and_handed_out_and_what_waits(
    broker: Broker, ada: Operator
) -> None:
    orders = broker.topic("orders", queues=1)
    for _ in range(120):
        broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=3)))
    broker.progress(broker.consumer_group("mail"), orders, 0, 90)
    ancient = broker.now - timedelta(days=8)
    broker.insert("history_figure", figure="stored", name="", minute=ancient, value=1)
    # As the minute before left it.
    before = {"stored": {"": 0}, "in": {"": 0}, "topic_in": {"orders": 0}, "out": {"": 0}, "group_out": {"mail": 30}}
    counted_at = broker.now - 2 * MINUTE
    broker.connection.execute("DELETE FROM history_counters")
    broker.insert("history_counters", single=True, recorded_at=counted_at, counters=Jsonb(before))

    def figures() -> dict[tuple[str, str], float]:
        rows = broker.connection.execute("SELECT figure, name, value FROM history_figure").fetchall()
        return {(row.figure, row.name): row.value for row in rows}

    eventually(lambda: ("topic_in", "orders") in figures())
    found, seconds = figures(), seconds_since(broker, counted_at)
    assert found["group_lag", "mail"] == found["lag", ""] == 30
    assert found["group_oldest", "mail"] >= 180
    assert found["topic_in", "orders"] == pytest.approx(120 / seconds, rel=0.01)
    assert found["in", ""] == found["topic_in", "orders"]
    assert found["group_out", "mail"] == pytest.approx(60 / seconds, rel=0.01)
    gone = broker.connection.execute("SELECT count(*) FROM history_figure WHERE minute = %s", (ancient,)).fetchone()
    assert gone is not None
    assert gone[0] == 0

    of_group = charts_of(ada.sees("charts/?group=mail"))
    assert [value for value in of_group["Lag"]["lag"].values() if value] == [30]
    of_topic = charts_of(ada.sees("charts/?topic=orders"))
    assert [value for value in of_topic["Messages"]["became visible"].values() if value] == [found["in", ""]]


def seconds_since(broker: Broker, then: datetime) -> float:
    """The seconds between two readings of the history, of which the latest is in the table."""
    row = broker.connection.execute("SELECT recorded_at FROM history_counters").fetchone()
    assert row is not None
    return float((row.recorded_at - then).total_seconds())


def test_of_many_processes_that_look_at_once_one_records_the_minute(broker: Broker, database: str) -> None:
    broker.connection.execute("DELETE FROM history_counters")
    then = broker.now - timedelta(days=300)
    broker.insert("history_counters", single=True, recorded_at=then, counters=Jsonb({}))

    def record(number: int) -> None:
        given: dict[str, Any] = {"recorded_at": then, "read_at": then + MINUTE, "days": 366, "counters": "{}"}
        columns = {"figure": ["looked", "seen"], "name": [str(number), str(number)], "value": [1.0, 1.0]}
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(RECORD_FIGURES.sql(), {**given, **columns})

    with ThreadPoolExecutor(8) as processes:
        list(processes.map(record, range(24)))

    rows = broker.connection.execute("SELECT name FROM history_figure WHERE figure IN ('looked', 'seen')").fetchall()
    assert len(rows) == 2
    assert len({row.name for row in rows}) == 1


def test_the_page_draws_the_minutes_of_an_hour_and_leaves_a_gap_where_none_was_recorded(
    broker: Broker, ada: Operator
) -> None:
    idle = recorded(broker, 20 * MINUTE, {})
    busy = recorded(
        broker,
        10 * MINUTE,
        {
            ("in", ""): 500.0,
            ("halves", ""): 20.0,
            ("commits", ""): 15.0,
            ("lag", ""): 7.0,
            ("oldest", ""): 3.5,
            ("checks", "decided"): 4.0,
            ("checks", "unanswered"): 1.0,
            ("late_ms", ""): 12.5,
            ("send_seconds", "0"): 98.0,
            ("send_seconds", "5"): 2.0,
        },
    )
    missing = (broker.now - 15 * MINUTE).strftime("%H:%M")

    charts = charts_of(ada.sees("charts/"))

    assert {at: charts["Messages"]["became visible"][at] for at in (idle, missing, busy)} == {
        idle: 0,
        missing: None,
        busy: 500,
    }
    assert {line: points[busy] for line, points in charts["Transactions"].items()} == {
        "begun": 20,
        "committed": 15,
        "rolled back": 0,
    }
    assert charts["Lag of all consumer groups"]["lag"][busy] == 7
    assert charts["Oldest unacked message"]["age"][busy] == 3.5
    assert charts["Checks"]["decided"][busy] == 4
    assert charts["Checks"]["unanswered"][busy] == 1
    assert charts["Lateness of releases"]["late"][busy] == 12.5
    times = {line: points[busy] for line, points in charts["Time of a send"].items()}
    assert times["p50"] is not None
    assert times["p99"] is not None
    assert 0 < times["p50"] <= 1
    assert 25 < times["p99"] <= 50
    assert charts["Time of a send"]["p50"][idle] is None


def test_days_are_means_over_the_minutes_that_were_recorded_and_the_highest_of_what_waits(
    broker: Broker, ada: Operator
) -> None:
    hours_ago = broker.now.replace(minute=30) - timedelta(hours=30)
    for minutes, rate, lag in ((1, 60.0, 100.0), (2, 0.0, 0.0), (3, 0.0, 5.0)):
        figures = {("in", ""): rate, ("lag", ""): lag}
        recorded(broker, broker.now - hours_ago + minutes * MINUTE, {name: of for name, of in figures.items() if of})

    charts = charts_of(ada.sees("charts/?span=7d"))

    assert len(charts["Messages"]["became visible"]) == 168
    assert sorted(value for value in charts["Messages"]["became visible"].values() if value) in ([20.0], [30.0], [60.0])
    assert max(value or 0 for value in charts["Lag of all consumer groups"]["lag"].values()) == 100
    recorded(broker, MINUTE * 5, {("in", ""): 1.0})
    assert len(charts_of(ada.sees("charts/?span=24h"))["Messages"]["became visible"]) == 96


def test_a_line_that_one_outlier_would_flatten_has_a_logarithmic_axis(broker: Broker, ada: Operator) -> None:
    for minutes, age in ((9, 2.0), (8, 3.0), (7, 2.5), (6, 90_000.0)):
        recorded(broker, minutes * MINUTE, {("oldest", ""): age, ("lag", ""): 5.0})

    axes = {
        html.unescape(name).partition(",")[0]: json.loads(html.unescape(options))["scales"]["y"]["type"]
        for _, options, name in CANVAS.findall(ada.sees("charts/").html)
    }

    assert axes["Oldest unacked message"] == "logarithmic"
    assert axes["Lag of all consumer groups"] == "linear"


def test_topics_and_groups_with_a_history_are_offered_and_their_pages_lead_here(broker: Broker, ada: Operator) -> None:
    broker.topic("orders")
    broker.consumer_group("mail")
    recorded(broker, 5 * MINUTE, {("topic_in", "orders"): 1.0, ("group_lag", "mail"): 2.0, ("group_lag", "gone"): 3.0})

    offered = re.findall(r'<option value="([^"]+)"', ada.sees("charts/").html)

    assert {"1h", "24h", "7d", "orders", "mail", "gone"} == set(offered)
    assert 'href="/console/charts/?topic=orders"' in ada.sees("topics/orders/").html
    assert 'href="/console/charts/?group=mail"' in ada.sees("consumer-groups/mail/").html
    assert "Group gone over time" in ada.sees("charts/?group=gone&span=never").text


def test_a_topic_that_was_chosen_outside_the_namespace_is_left_out(broker: Broker, ada: Operator) -> None:
    assert "Namespace team over time" in ada.sees("charts/?namespace=team&topic=orders").text
    assert "Topic team%orders over time" in ada.sees("charts/?namespace=team&topic=team%25orders").text
    assert "Topic orders over time" in ada.sees("charts/?namespace=&topic=orders").text


def test_without_a_history_the_page_says_when_there_will_be_one(broker: Broker, ada: Operator) -> None:
    page = ada.sees("charts/?group=nothing-of-this-name")

    assert "Nothing is recorded yet" in page.text
    assert "keeps it for 7 days" in page.text
    assert "<canvas" not in page.html


@given(st.lists(st.integers(0, 1000), min_size=len(BOUNDS) + 1, max_size=len(BOUNDS) + 1), st.floats(0.01, 1.0))
def test_a_quantile_lies_in_the_bucket_that_holds_it(counts: list[int], share: float) -> None:
    found = quantile_ms(share, counts)

    if not sum(counts):
        assert found is None
        return
    assert found is not None
    wanted, edges = share * sum(counts), (0.0, *BOUNDS, BOUNDS[-1])
    below = [sum(counts[:bucket]) for bucket in range(len(counts) + 1)]
    bucket = next(at for at in range(len(counts)) if below[at + 1] >= wanted and counts[at])
    assert edges[bucket] * 1000 - 0.001 <= found <= edges[bucket + 1] * 1000 + 0.001


@given(st.dictionaries(st.text(max_size=3), st.tuples(st.integers(0, 10**9), st.integers(0, 10**9))), st.floats(1, 1e6))
def test_a_rate_is_the_difference_of_two_counts_and_never_below_0(
    counts: dict[str, tuple[int, int]], seconds: float
) -> None:
    now = {"out": {name: after for name, (after, _) in counts.items()} | {"new": 5}}
    before = {"out": {name: earlier for name, (_, earlier) in counts.items() if name != "new"}}

    found = {one.name: one.value for one in rates(now, before, seconds)}

    assert "new" not in found
    assert all(value > 0 for value in found.values())
    assert len(found) <= 50
    for name, value in found.items():
        after, earlier = counts[name]
        assert value == pytest.approx((after - earlier) / seconds)
