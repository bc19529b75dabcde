"""Promises of the page of the reports: charts with their date, and what to do where there is none."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from psycopg.types.json import Jsonb

from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_agreement import metric


def chart(broker: Broker, number: int, title: str, labels: list[str], series: Mapping[str, Sequence[float]]) -> None:
    """A chart that the reports of three hours ago left."""
    broker.insert(
        "report_chart",
        number=number,
        title=title,
        about="by the hour",
        stacked=True,
        labels=Jsonb(labels),
        series=Jsonb(series),
        taken_at=broker.now - timedelta(hours=3),
    )


def test_without_a_report_the_page_says_how_to_make_one(ada: Operator) -> None:
    page = ada.sees("reports/")

    assert "There is no report yet" in page.text
    assert "The nightly export begins at " in page.text
    assert "./mq report DIR --console" in page.text
    assert "<canvas" not in page.html


def test_the_charts_have_the_date_of_the_export_that_they_are_of(broker: Broker, ada: Operator) -> None:
    chart(broker, 1, "Messages by hour", ["03-01 12:00", "03-01 13:00"], {"messages": [4, 5]})
    chart(broker, 0, "Transactions by hour", ["03-01 12:00"], {"committed": [3], "rolled back": [1]})
    chart(broker, 2, "Seconds late", [], {"p99": []})

    page = ada.sees("reports/")

    assert "3 h" in page.text.partition("As of ")[2][:120]
    assert page.html.count("<canvas") == 2
    assert page.html.index("Transactions by hour") < page.html.index("Messages by hour")
    assert "The export had none." in page.text
    assert "There is no report yet" not in page.text


def test_the_system_page_and_metrics_have_the_exports_and_how_far_they_are_behind(
    broker: Broker, ada: Operator
) -> None:
    orders = broker.topic("orders")
    message = broker.stored(orders, 0, b"x", timedelta(minutes=5))
    for _ in range(3):
        broker.stored(orders, 0, b"x", timedelta(minutes=1))
    broker.insert(
        "export",
        target="/exports/nightly",
        taken_at=broker.now - timedelta(minutes=2),
        finished_at=broker.now,
        segment_id=0,
        log_offset=message.log_offset,
        rows=Jsonb({"messages": 1, "entries": 0, "transactions": 2, "transactions_open": 3}),
    )

    [row] = ada.sees("system/").table("exports")

    assert (row[0], row[2:]) == ("/exports/nightly", ["1", "0", "5", "3"])
    folder = "/exports/nightly"
    assert metric(ada, "mqbroker_export_rows", folder=folder, table="transactions_open") == 3
    assert metric(ada, "mqbroker_export_lag_messages", folder=folder) == 3
    assert 120 <= metric(ada, "mqbroker_export_lag_seconds", folder=folder) < 600
    finished_at = int(broker.now.timestamp())
    assert metric(ada, "mqbroker_export_last_success_timestamp_seconds", folder=folder) == finished_at


def test_the_system_page_says_how_the_night_went_and_what_retention_waits_for(broker: Broker, ada: Operator) -> None:
    before = ada.sees("system/").text
    day = broker.now.date() - timedelta(days=1)
    started_at = broker.now - timedelta(hours=5)
    run = {"day": day, "started_at": started_at, "ended_at": started_at, "tries": 3, "failures": 3}
    broker.insert("nightly_run", **run, failure="export: no room")

    page = ada.sees("system/").text

    assert "No nightly export has begun yet. Done: 0, failed: 0." in before
    assert f"The nightly export of {day} failed 3 times, at last: export: no room." in page
    assert "failed, export: no room" in page
    assert "Done: 0, failed: 3." in page
    assert "Retention keeps them while all segments take less than 50.0" in page
    assert metric(ada, "mqbroker_nightly_exports_total", outcome="failed") == 3
    assert metric(ada, "mqbroker_segments_awaiting_export") == 0
