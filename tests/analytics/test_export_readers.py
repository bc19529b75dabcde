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
