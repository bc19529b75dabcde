"""The messages of the export: every stored message once, visible or not."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from analytics.tables.names import named

PROPERTIES = MapType(StringType(), StringType())

LOG = (
    StructType()
    .add("segment_id", IntegerType())
    .add("log_offset", LongType())
    .add("message_id", StringType())
    .add("topic_id", IntegerType())
    .add("queue_id", IntegerType())
    .add("producer_group_id", IntegerType())
    .add("transaction_id", StringType())
    .add("tags", StringType())
    .add("keys", ArrayType(StringType()))
    .add("sharding_key", StringType())
    .add("traceparent", StringType())
    .add("properties", BinaryType())
    .add("body", BinaryType())
    .add("body_form", StringType())
    .add("born_at", TimestampType())
    .add("stored_at", TimestampType())
    .add("weight", IntegerType())
)

MESSAGES = (
    StructType()
    .add("log_offset", LongType())
    .add("message_id", StringType())
    .add("topic", StringType())
    .add("queue_id", IntegerType())
    .add("producer_group", StringType())
    .add("transaction_id", StringType())
    .add("tags", StringType())
    .add("keys", ArrayType(StringType()))
    .add("sharding_key", StringType())
    .add("traceparent", StringType())
    .add("properties", PROPERTIES)
    .add("body", BinaryType())
    .add("body_bytes", IntegerType())
    .add("body_form", StringType())
    .add("born_at", TimestampType())
    .add("stored_at", TimestampType())
)


def messages(log: DataFrame, topics: DataFrame, groups: DataFrame) -> DataFrame:
    """Messages of log rows, with names for ids and the properties as a map.

    Properties are JSON that the broker wrote. The export stops at one that is not: a null would hide the loss.
    """
    text = F.col("properties").cast(StringType())
    readable = log.withColumns(
        {
            "properties": F.from_json(text, PROPERTIES, {"mode": "FAILFAST"}),
            "body_bytes": F.octet_length("body"),
        }
    )
    return named(named(readable, topics, "topic_id", "topic"), groups, "producer_group_id", "producer_group").to(
        MESSAGES
    )
