"""Percentiles by nearest rank: the smallest value that at least p of 100 values do not exceed.

So each percentile is a value that was measured. Spark's `percentile` would keep every distinct value of a group in
memory. This uses `percentile_approx`, which keeps about ten thousand: the rank is off by at most a ten-thousandth of
the group, so it is exact for groups of up to ten thousand values.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

PERCENTILES = (50, 95, 99)
# The rank of a percentile is wrong by at most the size of the group divided by this number.
ACCURACY = 10_000


def columns(value: str, unit: str) -> list[Column]:
    """Aggregates for a group: p50, p95, p99 and the maximum, in `unit`; null without values."""
    found = [F.percentile_approx(value, each / 100, ACCURACY).alias(f"p{each}_{unit}") for each in PERCENTILES]
    return [*found, F.max(value).alias(f"max_{unit}")]
