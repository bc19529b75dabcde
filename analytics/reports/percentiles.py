"""Percentiles by nearest rank: the smallest value that at least p of 100 values do not exceed.

Each is a value that was measured, and is exact. Ranks are found by sorting, which spills to disk where Spark's own
`percentile` keeps every distinct value of a group in memory.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

PERCENTILES = (50, 95, 99)
RANK, KNOWN = "rank_of_value", "known_values"


def ranked(frame: DataFrame, by: Sequence[str], value: str) -> DataFrame:
    """The rows with the rank of `value` in their group, from 1, and the number of values that are not null."""
    group = Window.partitionBy(*by)
    ordered = group.orderBy(F.col(value).asc_nulls_last())
    return frame.withColumns({RANK: F.row_number().over(ordered), KNOWN: F.count(value).over(group)})


def columns(value: str, unit: str) -> list[Column]:
    """Aggregates of a ranked group: p50, p95, p99 and the highest value, in `unit`; null without a value."""
    highest = F.max(value).alias(f"max_{unit}")
    return [*(_percentile(value, each).alias(f"p{each}_{unit}") for each in PERCENTILES), highest]


def _percentile(value: str, percent: int) -> Column:
    return F.max(F.when(F.col(RANK) == F.ceil(F.col(KNOWN) * percent / 100), F.col(value)))
