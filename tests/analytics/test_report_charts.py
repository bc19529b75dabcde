"""The charts of the reports: small, whatever the reports hold, and in the words of the console."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow

from analytics.reports import charts
from tests.analytics.conftest import ROOT

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHOW = """
import sys
from pathlib import Path
import django
django.setup()
from analytics.reports import shown
shown.show(Path(sys.argv[1]))
"""
OUTCOMES = ("committed", "rolled_back", "discarded", "prepared")


def outcome(hours: int, **counts: int) -> dict[str, Any]:
    """A row of `outcomes`, so many hours after noon."""
    return {"hour": NOON + timedelta(hours=hours), **dict.fromkeys(OUTCOMES, 0), **counts}


def test_hours_are_summed_over_topics_and_groups_and_only_the_latest_are_shown() -> None:
    old = [outcome(-hours, committed=1) for hours in range(1, 200)]
    report = pyarrow.Table.from_pylist([*old, outcome(0, committed=2, discarded=1), outcome(0, committed=3)])

    chart = charts.by_hour(report, "Transactions by hour", "", OUTCOMES)

    assert len(chart.labels) == charts.MAX_HOURS
    assert chart.labels[-2:] == ["03-01 11:00", "03-01 12:00"]
    assert {name: values[-2:] for name, values in chart.series.items()} == {
        "committed": [1, 5],
        "rolled back": [0, 0],
        "discarded": [0, 1],
        "prepared": [0, 0],
    }


def test_names_are_in_the_order_of_their_last_column_and_deleted_ones_stay_readable() -> None:
    columns = ("p50_seconds", "p95_seconds", "p99_seconds")
    rows = [{"topic": f"orders-{number}", "level": 3, **dict.fromkeys(columns, number / 10)} for number in range(1, 30)]
    timer = {"topic": None, "level": None, **dict.fromkeys(columns, 9.0)}
    none = {"topic": "never late", "level": 1, **dict.fromkeys(columns)}

    chart = next(chart for chart in charts.of(reports(lateness=[*rows, timer, none])) if chart.title == "Seconds late")

    assert len(chart.labels) == charts.MAX_NAMES
    assert chart.labels[:2] == ["(deleted), timer", "orders-29, level 3"]
    assert (chart.stacked, chart.series["p99"][:2]) == (False, [9.0, 2.9])


def test_reports_without_a_row_make_charts_without_a_value() -> None:
    found = charts.of(reports())

    assert len(found) == 6
    assert all(not chart.labels and not any(chart.series.values()) for chart in found)


def test_retries_are_summed_by_their_consumer_group() -> None:
    rows = [
        {"consumer_group": "coupons", "retries": 3, "dead_letters": 0},
        {"consumer_group": "coupons", "retries": 1, "dead_letters": 2},
        {"consumer_group": "mail", "retries": 9, "dead_letters": 1},
    ]

    [chart] = [one for one in charts.of(reports(retries=rows)) if one.title == "Retries and dead letters"]

    assert (chart.labels, chart.series) == (["coupons", "mail"], {"retries": [4, 9], "dead letters": [2, 1]})


def test_reports_of_another_database_are_not_shown_in_this_ones_console(busy_database: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"database": "1/2", "taken_at": "2026-03-01T12:00:00+00:00"}')
    environ = {**os.environ, "DATABASE_URL": busy_database, "DJANGO_SETTINGS_MODULE": "mqbroker.settings"}

    done = subprocess.run([sys.executable, "-c", SHOW, tmp_path], cwd=ROOT, env=environ, capture_output=True, text=True)

    assert "FolderRefused: The reports are of an export of another database (1/2, this is " in done.stderr
    with psycopg.connect(busy_database) as connection:
        assert connection.execute("SELECT count(*) FROM report_chart").fetchall() == [(0,)]


def reports(**rows: list[dict[str, Any]]) -> dict[str, pyarrow.Table]:
    """Reports with these rows, the others empty."""
    names = ("outcomes", "volumes", "decision_times", "lateness", "retries", "discards")
    return {name: pyarrow.Table.from_pylist(rows.get(name, [])) for name in names}
