"""Percentiles by nearest rank: the smallest value that at least p of 100 values do not exceed.

Each is a value that was measured. Spark's `percentile` keeps every distinct value of a group in memory; this is its
`percentile_approx`, which keeps some ten thousand: the rank is right to a ten-thousandth of the group, so exact in a
group of ten thousand values or fewer.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

PERCENTILES = (50, 95, 99)
# A rank is off by the group's size divided by this at most.
ACCURACY = 10_000


def columns(value: str, unit: str) -> list[Column]:
    """Aggregates of a group: p50, p95, p99 and the highest value, in `unit`; null without a value."""
    found = [F.percentile_approx(value, each / 100, ACCURACY).alias(f"p{each}_{unit}") for each in PERCENTILES]
    return [*found, F.max(value).alias(f"max_{unit}")]
