"""Promises of the page of the broker's surroundings: is it the broker, and where to look."""

from datetime import UTC, datetime, timedelta

import psycopg

from monitoring.system import System
from store.db.health import Connections, HotTable, Snapshot
from store.process.heartbeats import Alive
from tests.broker.polling import eventually
from tests.console.operators import Operator, Page
from tests.console.rows import Broker

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HEALTHY = {
    "now": NOW,
    "snapshots": [Snapshot("session", "mqbroker-orm, process 7", "active", 3, 0.1)],
    "connections": [Connections("mqbroker-orm", "idle", 20, 100)],
    "hot_tables": [HotTable("receipt", 5, 90_000, NOW, 8192)],
    "segments": [],
    "redis": None,
    "processes": [Alive("web 1 at a", "web", NOW), Alive("worker 2 at a", "worker", NOW - timedelta(seconds=30))],
}


def problems(**changed: object) -> list[str]:
    """What is out of order where a healthy reading is changed in this."""
    return System(**{**HEALTHY, **changed}).problems  # type: ignore[arg-type]  # fields by their names


def test_a_healthy_reading_has_no_problem_and_each_thing_out_of_order_has_one() -> None:
    assert problems() == []
    assert problems(snapshots=[Snapshot("session", "psql, process 9", "idle in transaction", 9, 61.0)]) == [
        "A session (psql, process 9) pins a snapshot for 61 s: dead rows stay, and scans get slower."
    ]
    assert problems(snapshots=[Snapshot("replication slot", "copy", "inactive", 9, None)]) == [
        "A replication slot (copy) pins a snapshot: dead rows stay, and scans get slower."
    ]
    assert problems(hot_tables=[HotTable("receipt", 5, 200_000, None, 8192)]) == [
        "The table receipt has 200,000 dead rows: VACUUM does not keep up."
    ]
    assert problems(connections=[Connections("x", "idle", 95, 100)]) == [
        "95 of 100 connections of the server are used: the next process may find none."
    ]
    assert problems(redis="Redis does not answer (TimeoutError)") == ["Redis does not answer (TimeoutError)"]
    assert problems(processes=[Alive("worker 2 at a", "worker", NOW - timedelta(seconds=36))]) == [
        "No worker was reached by a tick of beat: web processes do its work, seconds later.",
        "No web process polls: without a worker nothing is released or checked.",
    ]


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
