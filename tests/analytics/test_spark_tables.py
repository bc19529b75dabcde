"""The data source `mqbroker` in a session of Spark: empty tables, tables of SQL, and frames that are used twice."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from analytics.readers.datasource.published import TABLES
from tests.analytics.test_export_committed import fill
from tests.analytics.writers import Connection

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_a_fresh_broker_is_read_as_no_rows(spark: SparkSession, busy_database: str, table: str) -> None:
    assert spark.read.format("mqbroker").options(url=busy_database, table=table).load().collect() == []


def test_a_frame_that_is_used_twice_has_all_rows_in_each_use(
    spark: SparkSession, busy_database: str, writer: Connection
) -> None:
    fill(writer, 30)
    options = {"url": busy_database, "table": "messages", "columns": "log_offset, topic"}
    frame = spark.read.format("mqbroker").options(**options, rows_per_slice=8).load()

    union = frame.where("log_offset = 3").unionAll(frame.where("log_offset > 27"))
    pairs = frame.where("log_offset < 20").alias("a").join(frame.where("log_offset > 15").alias("b"), "log_offset")

    assert sorted(row["log_offset"] for row in union.collect()) == [3, 28, 29]
    assert (pairs.count(), frame.count()) == (4, 30)


def test_a_view_of_sql_reads_the_broker_and_a_table_whose_options_spark_would_lose_is_refused(
    spark: SparkSession, busy_database: str, writer: Connection
) -> None:
    fill(writer, 30)
    using = f"USING mqbroker OPTIONS (url '{busy_database}', `table` 'messages', rows_per_slice '8')"
    spark.sql(f"CREATE TEMPORARY VIEW broker_view {using}")

    [[counted]] = spark.sql("SELECT count(*) FROM broker_view WHERE log_offset >= 10").collect()
    joined = spark.sql("SELECT * FROM broker_view JOIN broker_view AS other USING (log_offset)").count()

    assert (counted, joined) == (20, 30)
    with pytest.raises(AnalysisException, match=r"Spark 4\.3 loses the options of CREATE TABLE: use "):
        spark.sql(f"CREATE TABLE broker_table {using}")
