"""`./mq report` of a lake: volumes and lateness of its committed messages."""

from pathlib import Path

import pyarrow
from pyspark.sql import SparkSession

from analytics.files.place import Local
from analytics.reports import deliveries, page, tables
from analytics.reports.catalog import REPORTS
from tests.analytics import lakes
from tests.analytics.frames import rows
from tests.analytics.test_export_committed import fill
from tests.analytics.writers import Connection


def test_volumes_and_lateness_are_those_of_the_committed_messages(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    fill(writer, 30)
    writer.execute("UPDATE consume_queue SET due_at = entered_at - interval '2 s' WHERE queue_id = 1")
    writer.commit()
    lakes.caught_up(busy_database, tmp_path / "lake")

    [export] = tables.exports(Local(tmp_path / "lake"))
    of = tables.read(spark, export)

    [volume] = rows(deliveries.volumes(of.messages), "topic", "messages", "in_transactions")
    assert volume == {"topic": "orders", "messages": 20, "in_transactions": 10}
    [late] = rows(deliveries.lateness(of.entries, of.messages), "topic", "level", "visible", "p50_seconds")
    assert late == {"topic": "orders", "level": None, "visible": 10, "p50_seconds": 2.0}
    assert of.transactions.count() == 0
    without_rows = {report.name: pyarrow.table({report.bar: []}) for report in REPORTS}
    assert "20 rows of messages and 20 entries" in page.of([export], without_rows)
