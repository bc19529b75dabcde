"""The checks of the export: every check attempt with its answer."""

from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, IntegerType, StringType, StructType, TimestampType

ATTEMPTS = (
    StructType()
    .add("attempt_id", StringType())
    .add("segment_id", IntegerType())
    .add("transaction_id", StringType())
    .add("endpoint_id", IntegerType())
    .add("endpoint_url", StringType())
    .add("asked_at", TimestampType())
    .add("counted", BooleanType())
    .add("status", IntegerType())
    .add("latency_ms", IntegerType())
    .add("answer", StringType())
    .add("reason", StringType())
)

CHECKS = (
    StructType()
    .add("transaction_id", StringType())
    .add("endpoint_url", StringType())
    .add("asked_at", TimestampType())
    .add("counted", BooleanType())
    .add("status", IntegerType())
    .add("latency_ms", IntegerType())
    .add("answer", StringType())
    .add("reason", StringType())
)


def checks(attempts: DataFrame) -> DataFrame:
    """The checks of the rows of check attempts."""
    return attempts.to(CHECKS)
