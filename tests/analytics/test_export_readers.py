"""The ways of a row to a file: by JDBC, by ADBC and Spark, and by ADBC alone. Their files are equal in every column."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.export import pipeline
from analytics.files.hadoop import Hadoop
from analytics.files.place import Local
from analytics.readers import opening
from analytics.readers.adbc import AdbcSource
from analytics.tables import CHECKS, ENDED, ENTRIES, MESSAGES, TIMERS, UNDECIDED, Table
from tests.analytics.exports import HEAVIEST
from tests.analytics.parquet import rows, types
from tests.analytics.past import Past
from tests.analytics.writers import Connection, begin

TABLES = {
    "messages": MESSAGES,
    "entries": ENTRIES,
    "ended": ENDED,
    "undecided": UNDECIDED,
    "checks": CHECKS,
    "timers": TIMERS,
}

BEGIN = "SET TRANSACTION READ ONLY"


# Lists, maps, bytes, fractions and short numbers, with a day and without one.
USUAL = ("messages", "ended", "timers")


@pytest.mark.parametrize(
    "table",
    [pytest.param(table, id=name, marks=() if name in USUAL else pytest.mark.long) for name, table in TABLES.items()],
)
def test_each_way_writes_the_same_rows_and_columns(
    spark: SparkSession, database: str, past: Past, table: Table, tmp_path: Path
) -> None:
    here, by_adbc = Local(tmp_path), AdbcSource(spark, database)

    pipeline.of_moment(opening.jdbc(spark, database, HEAVIEST), table, BEGIN, "true", here, "jdbc")
    pipeline.of_moment(by_adbc, table, BEGIN, "true", Hadoop(spark, tmp_path.as_uri()), "spark")
    pipeline.of_moment(by_adbc, table, BEGIN, "true", here, "workers")

    found = [sorted(map(repr, rows(tmp_path / way))) for way in ("jdbc", "spark", "workers")]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 1
    assert types(tmp_path / "jdbc") == types(tmp_path / "spark") == types(tmp_path / "workers")


# The days that one calendar has and another lacks, the first year, the year 1900 with its local times, and the far end.
HOSTILE = ("1582-10-04", "1582-10-10", "1582-10-15", "0001-01-01", "1900-02-28 23:59:59.999999", "9999-12-31")


def test_both_readers_return_times_of_any_calendar_as_they_were_stored(
    spark: SparkSession, busy_database: str, writer: Connection
) -> None:
    for time in HOSTILE:
        begin(writer)
        writer.execute("UPDATE commit_log SET born_at = %s WHERE born_at IS NULL", (f"{time} UTC",))
    writer.commit()

    readers = (opening.jdbc(spark, busy_database, HEAVIEST), AdbcSource(spark, busy_database))
    found = [reader.whole(MESSAGES, BEGIN).selectExpr("CAST(born_at AS STRING)").collect() for reader in readers]

    expected = sorted(f"{time} 00:00:00" if len(time) == 10 else time for time in HOSTILE)
    assert [sorted(row["born_at"] for row in rows) for rows in found] == [expected, expected]
