"""The entries of the export: the message at each queue offset."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, ShortType, StringType, StructType, TimestampType

from analytics.tables.names import named

QUEUES = (
    StructType()
    .add("segment_id", IntegerType())
    .add("topic_id", IntegerType())
    .add("queue_id", IntegerType())
    .add("queue_offset", LongType())
    .add("log_segment", IntegerType())
    .add("log_offset", LongType())
    .add("tags_code", LongType())
    .add("reconsume_times", ShortType())
    .add("entered_at", TimestampType())
    .add("real_topic_id", IntegerType())
    .add("real_queue_id", IntegerType())
)

ENTRIES = (
    StructType()
    .add("topic", StringType())
    .add("queue_id", IntegerType())
    .add("queue_offset", LongType())
    .add("log_segment", IntegerType())
    .add("log_offset", LongType())
    .add("tags_code", LongType())
    .add("reconsume_times", ShortType())
    .add("entered_at", TimestampType())
    .add("real_topic", StringType())
    .add("real_queue_id", IntegerType())
    .add("deliver_at", TimestampType())
)


def entries(queues: DataFrame, topics: DataFrame) -> DataFrame:
    """The entries of queue rows. In a delay level's queue an entry has its real topic, and its due time from its tags
    code, which is in ms.
    """
    waiting = F.col("real_topic_id").isNotNull()
    timed = queues.withColumn("deliver_at", F.when(waiting, F.timestamp_millis("tags_code")))
    return named(named(timed, topics, "topic_id", "topic"), topics, "real_topic_id", "real_topic").to(ENTRIES)
