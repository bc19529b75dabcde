"""An export while the broker is at work: its tables agree, as of one moment."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mqbroker_client import Consumer, Producer
from pyspark.sql import SparkSession

from analytics.errors import CountsDiffer
from analytics.export import job
from analytics.export.job import Counted
from analytics.files.place import Local
from analytics.readers.adbc import AdbcSource
from tests.analytics import writers
from tests.analytics.exports import write
from tests.analytics.parquet import rows, transactions
from tests.broker.running import RunningBroker


def export(spark: SparkSession, database: str, to: Path) -> dict[str, list[dict[str, Any]]]:
    """The tables of a new export."""
    write(spark, database, to)
    return {"messages": rows(to / "messages"), "entries": rows(to / "entries"), "transactions": transactions(to)}


def test_an_export_among_writers_has_each_transaction_once_and_agrees_with_its_entries(
    spark: SparkSession, busy_database: str, tmp_path: Path
) -> None:
    with writers.at_work(busy_database, threads=2):
        tables = export(spark, busy_database, tmp_path / "export")

    begun = Counter(message["transaction_id"] for message in tables["messages"])
    exported = Counter(transaction["transaction_id"] for transaction in tables["transactions"])
    assert begun == exported
    assert set(exported.values()) == {1}
    transaction_of = {message["log_offset"]: message["transaction_id"] for message in tables["messages"]}
    visible = Counter(transaction_of[entry["log_offset"]] for entry in tables["entries"])
    committed = Counter(row["transaction_id"] for row in tables["transactions"] if row["state"] == "COMMITTED")
    assert visible == committed
    offsets = sorted(entry["queue_offset"] for entry in tables["entries"])
    assert offsets == list(range(len(offsets)))


def test_an_export_pins_no_snapshot_while_it_writes(
    spark: SparkSession, busy_database: str, writer: writers.Connection, tmp_path: Path
) -> None:
    pinned = []

    def look(counted: Counted) -> None:
        """Between two tables, how many other sessions hold back the clean-up of the hot tables."""
        pinned.append(
            writer.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() "
                "AND datname = current_database()"
            ).fetchone()
        )

    job.write(AdbcSource(spark, busy_database), busy_database, Local(tmp_path / "export"), look)

    assert pinned == [(0,)] * 5


def test_what_a_running_broker_did_is_what_is_exported(
    spark: SparkSession, broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str, tmp_path: Path
) -> None:
    producer.begin(orders, b"order \x00 1", keys=["k1"], tags="paid", properties={"price": "10"}).commit()
    producer.begin(orders, b"order 2").rollback()
    undecided = producer.begin(orders, b"order 3")
    consumer.ack(consumer.receive(orders))

    tables = export(spark, broker.database_url, tmp_path / "export")

    stored = {row["body"]: row for row in tables["messages"] if row["topic"] == orders}
    assert stored.keys() == {b"order \x00 1", b"order 2", b"order 3"}
    first = stored[b"order \x00 1"]
    assert (first["keys"], first["tags"], first["properties"]) == (["k1"], "paid", {"price": "10"})
    outcome = {row["transaction_id"]: row for row in tables["transactions"]}
    states = {body: outcome[row["transaction_id"]]["state"] for body, row in stored.items()}
    assert states == {b"order \x00 1": "COMMITTED", b"order 2": "ROLLED_BACK", b"order 3": "PREPARED"}
    assert outcome[first["transaction_id"]]["decided_by"] == "producer"
    entries = [entry for entry in tables["entries"] if entry["topic"] == orders]
    assert [entry["log_offset"] for entry in entries] == [first["log_offset"]]
    undecided.rollback()


def test_counts_that_differ_stop_the_export() -> None:
    job.require_equal(Counted("messages", 10, 10))

    with pytest.raises(CountsDiffer) as refused:
        job.require_equal(Counted("messages", 9, 10))

    assert refused.value.code == "counts_differ"
    assert str(refused.value) == (
        "messages: the files hold 9 rows and the broker 10, although closed ranges do not change; the folder is as it "
        "was. Please report this."
    )
