"""The two readers: Spark's JDBC, and ADBC in Spark's Python workers. Their frames are equal in every column."""

import pytest
from pyspark.sql import SparkSession

from analytics import job
from analytics.readers.adbc import AdbcSource
from analytics.tables import CHECKS, ENDED, ENTRIES, MESSAGES, TIMERS, UNDECIDED, Table
from tests.analytics.conftest import HEAVIEST
from tests.analytics.past import Past

TABLES = {
    "messages": MESSAGES,
    "entries": ENTRIES,
    "ended": ENDED,
    "undecided": UNDECIDED,
    "checks": CHECKS,
    "timers": TIMERS,
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_both_readers_give_the_same_rows_in_every_column(
    spark: SparkSession, database: str, past: Past, table: Table
) -> None:
    readers = (job.jdbc(spark, database, HEAVIEST), AdbcSource(spark, database))

    by_jdbc, by_source = (reader.slices(table, ["true"]) for reader in readers)

    assert by_jdbc.schema.simpleString() == by_source.schema.simpleString() == table.columns.simpleString()
    rows = sorted(map(repr, by_source.collect()))
    assert sorted(map(repr, by_jdbc.collect())) == rows
    assert len(rows) > 1
