"""Promises of the page of the broker's surroundings: is it the broker, and where to look."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg

from analytics.nightly import watching
from analytics.rows import Nights
from console.monitoring.system import Database, Disk, Exports, System
from store.notices.heartbeats import Alive
from store.rows import Connections, ExportWait, HotTable, Snapshot
from tests.broker.polling import eventually
from tests.console.operators import Operator, Page
from tests.console.rows import Broker

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DATABASE = Database(
    snapshots=[Snapshot("session", "mqbroker-orm, process 7", "active", 3, 0.1)],
    connections=[Connections("mqbroker-orm", "idle", 20, 100)],
    hot_tables=[HotTable("receipt", 5, 90_000, NOW, 8192)],
    segments=[],
    exports=Exports((), ExportWait(0, 0, None), 0),
)
HEALTHY = {
    "now": NOW,
    "databases": {"c0": DATABASE},
    "redis": None,
    "processes": [Alive("web 1 at a", "web", NOW), Alive("worker 2 at a", "worker", NOW - timedelta(seconds=9))],
}


def problems(**changed: object) -> list[str]:
    """What is out of order where a healthy reading is changed in this."""
    return System(**{**HEALTHY, **changed}).problems  # type: ignore[arg-type]  # fields by their names


def of_database(**changed: Any) -> list[str]:
    """What is out of order where the database of a healthy reading is changed in this."""
    return problems(databases={"c0": replace(DATABASE, **changed)})


def test_a_healthy_reading_has_no_problem_and_each_thing_out_of_order_has_one() -> None:
    assert problems() == []
    assert of_database(snapshots=[Snapshot("session", "psql, process 9", "idle in transaction", 9, 61.0)]) == [
        "A session (psql, process 9) pins a snapshot for 61 s: dead rows stay, and scans get slower."
    ]
    assert of_database(snapshots=[Snapshot("replication slot", "copy", "inactive", 9, None)]) == [
        "A replication slot (copy) pins a snapshot: dead rows stay, and scans get slower."
    ]
    assert of_database(hot_tables=[HotTable("receipt", 5, 200_000, None, 8192)]) == [
        "The table receipt has 200,000 dead rows: VACUUM does not keep up."
    ]
    assert of_database(connections=[Connections("x", "idle", 95, 100)]) == [
        "95 of 100 connections of the server are used: the next process may find none."
    ]
    assert problems(disk=Disk(5 * 1024**3, 100 * 1024**3)) == [
        "The disk of PostgreSQL's data fills: 5.0 GiB of 100 are free; "
        "retention drops segments by MQBROKER_RESERVED_HOURS only."
    ]
    assert problems(disk=Disk(50, 100)) == []
    assert problems(redis="Redis does not answer (TimeoutError)") == ["Redis does not answer (TimeoutError)"]
    assert problems(processes=[Alive("worker 2 at a", "worker", NOW - timedelta(seconds=11))]) == [
        "No worker was reached by a tick of beat: web processes do its work, seconds later.",
        "No web process polls: without a worker nothing is released or checked.",
    ]


def nights(**changed: object) -> Nights:
    """A run of last night that ended well, where it is changed in this."""
    fields = {
        "due_day": date(2026, 1, 1),
        "since": 3600.0,
        "day": date(2026, 1, 1),
        "started_at": NOW,
        "ended_at": NOW,
        "tries": 1,
        "failure": None,
        "succeeded": 1,
        "failed": 0,
    }
    return Nights(**{**fields, **changed})  # type: ignore[arg-type]  # fields by their names


def test_an_export_that_is_missing_failed_or_came_too_late_is_a_problem() -> None:
    def waits(found: ExportWait) -> list[str]:
        return of_database(exports=Exports((), found, 10))

    dropped = (
        "Retention dropped segments before their export (1 so far, the last one at 2025-12-31 01:00 UTC): all segments "
        "took more than RETAIN_UNTIL_EXPORTED_MAX_BYTES."
    )
    late = nights(due_day=date(2026, 1, 2))

    assert waits(ExportWait(2, 0, None)) == []
    assert waits(ExportWait(2, 1, NOW - timedelta(hours=25))) == []
    assert waits(ExportWait(2, 1, NOW - timedelta(hours=23))) == [dropped]
    assert problems(beside=[watching.of(nights())]) == []
    assert problems(beside=[watching.of(nights(failure="export: no room", tries=3))]) == [
        "The nightly export of 2026-01-01 failed 3 times, at last: export: no room."
    ]
    assert problems(beside=[watching.of(late)]) == [
        "No worker started the nightly export of 2026-01-02: each needs the extra `analytics`, and its log says when "
        "it is missing."
    ]
    assert problems(beside=[watching.of(late._replace(since=60.0))]) == []


def test_the_page_shows_processes_snapshots_tables_and_segments(broker: Broker, ada: Operator, database: str) -> None:
    with psycopg.connect(database, application_name="a forgotten psql") as forgotten:
        forgotten.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        forgotten.execute("SELECT 1")

        def with_its_web_process() -> Page | None:
            page = ada.sees("system/")
            return page if any(row[1:2] == ["web"] for row in page.table("processes")) else None

        page = eventually(with_its_web_process)

    assert "It is the broker, or what it runs on" in page.text
    assert "No worker was reached by a tick of beat" in page.text
    assert any("a forgotten psql" in row[1] for row in page.table("snapshots"))
    assert {row[0] for row in page.table("hot-tables")} >= {"half_message", "receipt", "timer"}
    assert ["1", "open"] in [row[:2] for row in page.table("segments")]
    assert any(row[0] == "mqbroker-orm" for row in page.table("connections"))


def test_settings_are_shown_and_secrets_are_not(broker: Broker, ada: Operator) -> None:
    page = ada.sees("system/")

    assert "MQBROKER_TRANSACTION_CHECK_MAX" in page.text
    assert "MQBROKER_SECRET_KEY set, and kept secret" in page.text
    assert "a secret of these tests" not in page.html
