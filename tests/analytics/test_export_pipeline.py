"""The steps of the export's pipeline: frames of literal rows, from slices to files."""

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from analytics.export import pipeline, progress
from analytics.tables import ENTRIES, TIMERS

COLUMNS = "segment int, queue_offset long, entered_at timestamp"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)


def test_rows_get_the_day_of_their_table(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, 0, NOON), (1, 1, MIDNIGHT)], COLUMNS)

    dated = pipeline.dated(rows, ENTRIES)

    assert [str(row.day) for row in dated.collect()] == ["2026-03-01", "2026-03-02"]


def test_rows_of_a_table_without_a_day_lose_their_segment_and_nothing_else(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, 0, NOON)], COLUMNS)

    assert pipeline.dated(rows, TIMERS).columns == ["queue_offset", "entered_at"]


def test_files_lie_by_segment_and_day(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, 0, NOON), (1, 1, MIDNIGHT), (2, 2, MIDNIGHT)], COLUMNS)

    pipeline.write(pipeline.dated(rows, ENTRIES), (tmp_path / "entries").as_uri())

    folders = {str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")}
    assert folders == {f"entries/{day}" for day in ("segment=1/day=2026-03-01", "segment=1/day=2026-03-02")} | {
        "entries/segment=2/day=2026-03-02"
    }
    assert spark.read.parquet(str(tmp_path / "entries")).count() == 3


def test_a_long_job_says_its_table_and_how_far_it_is(spark: SparkSession) -> None:
    said: list[str] = []

    def slow(numbers: object) -> object:
        import time

        for batch in numbers:  # type: ignore[attr-defined]  # an iterator of Arrow batches
            # Longer than the pause between two lines.
            time.sleep(1.5)
            yield batch

    spark.sparkContext.setJobGroup("messages", "messages: 3 slices")
    with progress.shown(spark, said.append):
        spark.range(0, 3, 1, 3).mapInArrow(slow, "id long").count()  # type: ignore[arg-type]  # as Spark takes it

    assert progress.slices(spark) is None
    assert said
    assert all(line.startswith("messages: ") and "slices, some " in line for line in said)
