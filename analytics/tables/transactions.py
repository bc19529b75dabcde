"""The transactions of the export: one row each, with its state."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructType, TimestampType

from analytics.tables.names import named

OPERATIONS = (
    StructType()
    .add("segment_id", IntegerType())
    .add("operation_id", LongType())
    .add("transaction_id", StringType())
    .add("producer_group_id", IntegerType())
    .add("decision", StringType())
    .add("decided_by", StringType())
    .add("decided_at", TimestampType())
    .add("check_times", IntegerType())
    .add("stored_at", TimestampType())
    .add("messages", IntegerType())
    .add("remark", StringType())
)

HALVES = (
    StructType()
    .add("transaction_id", StringType())
    .add("producer_group_id", IntegerType())
    .add("stored_at", TimestampType())
    .add("check_times", IntegerType())
    .add("discarded_at", TimestampType())
    .add("messages", IntegerType())
    .add("decided_by", StringType())
    .add("remark", StringType())
)

TRANSACTIONS = (
    StructType()
    .add("transaction_id", StringType())
    .add("producer_group", StringType())
    .add("state", StringType())
    .add("prepared_at", TimestampType())
    .add("decided_at", TimestampType())
    .add("decided_by", StringType())
    .add("seconds_to_decision", DoubleType())
    .add("check_times", IntegerType())
    .add("messages", IntegerType())
    .add("remark", StringType())
)


def transactions(operations: DataFrame, halves: DataFrame, groups: DataFrame) -> DataFrame:
    """The ended transactions by their operations, and the undecided ones by their half messages.

    Both must come from one closed range: no transaction is then in both, and none in neither.
    """
    outcomes = decided(operations).unionByName(undecided(halves))
    microseconds = F.unix_micros("decided_at") - F.unix_micros("prepared_at")
    timed = outcomes.withColumn("seconds_to_decision", microseconds / 1_000_000)
    return named(timed, groups, "producer_group_id", "producer_group").to(TRANSACTIONS)


def decided(operations: DataFrame) -> DataFrame:
    """The transactions that were committed or rolled back; other operations are left out."""
    ends = operations.where(F.col("decision").isin("COMMIT", "ROLLBACK"))
    state = F.when(F.col("decision") == "COMMIT", "COMMITTED").otherwise("ROLLED_BACK")
    return (
        ends.withColumn("state", state)
        .withColumnRenamed("stored_at", "prepared_at")
        .drop("segment_id", "operation_id", "decision")
    )


def undecided(halves: DataFrame) -> DataFrame:
    """The transactions without an end. Of a discarded one the discard is taken for the decision."""
    state = F.when(F.col("discarded_at").isNull(), "PREPARED").otherwise("DISCARDED")
    return halves.withColumn("state", state).withColumnsRenamed(
        {"stored_at": "prepared_at", "discarded_at": "decided_at"}
    )
