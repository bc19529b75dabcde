"""Reports of messages that became visible: lateness of delays, waiting timers, retries and dead letters, volumes."""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.reports import tables
from analytics.tables import COPIED
from store.naming.names import DEAD_LETTER_PREFIX, RETRY_PREFIX

# The columns that an entry of a delay level and the entry of its release have in common.
SAME = ("message", "topic", "reconsume_times")


def lateness(entries: DataFrame, messages: DataFrame) -> DataFrame:
    """Seconds from the due time of a delayed message to the entry that made it visible.

    Grouped by `topic` (of messages and of retries) and delay `level`: `delayed` counts the entries, `visible` the
    entries that became visible; p50, p95, p99 and maximum are of visible entries. An entry that is not visible still
    waits, was recalled, or its topic was deleted. Due times of levels are exact to the millisecond. Rows without a
    level are of released timers, whose due time is exact to the microsecond. Timers that were released before the
    column `due_at` existed are not counted.
    """
    placed = tables.with_message(entries, messages)
    visible = placed.where("deliver_at IS NULL").select(
        *(F.col(column).alias(f"visible_{column}") for column in (*SAME, "entered_at"))
    )
    delayed = placed.where("deliver_at IS NOT NULL").drop("topic").withColumnRenamed("real_topic", "topic")
    # A message may be delayed for one topic several times: each release is the next entry after the delay.
    next_entry = F.col("visible_entered_at") >= F.col("entered_at")
    same = [F.col(column) == F.col(f"visible_{column}") for column in SAME]
    by_entry = ("topic", (F.col("queue_id") + 1).alias("level"), "queue_offset", "deliver_at")
    released = delayed.join(visible, [*same, next_entry], "left")
    first = released.groupBy(*by_entry).agg(F.min("visible_entered_at").alias("visible_at"))
    at_levels = first.select("topic", "level", _seconds("deliver_at", "visible_at").alias("late"))
    of_timers = entries.where("due_at IS NOT NULL").select(
        "topic", F.lit(None).cast("int").alias("level"), _seconds("due_at", "entered_at").alias("late")
    )
    return (
        at_levels.unionByName(of_timers)
        .groupBy("topic", "level")
        .agg(F.count("*").alias("delayed"), F.count("late").alias("visible"), *tables.percentiles("late", "seconds"))
    )


def timers(waiting: DataFrame, taken_at: datetime) -> DataFrame:
    """Timers that were waiting at the moment of the export, by `topic`.

    `overdue` counts the timers that were due before this moment, `max_seconds_overdue` is the longest delay among them;
    `next_due_at` is the earliest due time.
    """
    now = F.lit(taken_at)
    return (
        waiting.withColumn("overdue_by", F.when(F.col("due_at") < now, _seconds("due_at", now)))
        .groupBy("topic")
        .agg(
            F.count("*").alias("timers"),
            F.count("overdue_by").alias("overdue"),
            F.max("overdue_by").alias("max_seconds_overdue"),
            F.min("due_at").alias("next_due_at"),
        )
    )


def retries(entries: DataFrame, messages: DataFrame) -> DataFrame:
    """Retries and dead letters by `consumer_group`, `topic` of the message, and `reconsume_times` at that time.

    A retry counts when it becomes visible again; a redriven dead letter also counts as a retry. Retries of ordered
    groups stay in their queue and have no entry. `first_at` and `last_at` are the first and last time of the counted
    entries.
    """
    retry, dead = F.col("topic").startswith(RETRY_PREFIX), F.col("topic").startswith(DEAD_LETTER_PREFIX)
    prefix = F.when(retry, F.lit(len(RETRY_PREFIX))).otherwise(F.lit(len(DEAD_LETTER_PREFIX)))
    failed = tables.with_message(entries.where(retry | dead), messages).select(
        F.substring("topic", prefix + 1, F.length("topic")).alias("consumer_group"),
        F.col("stored_topic").alias("topic"),
        "reconsume_times",
        retry.alias("retry"),
        "entered_at",
    )
    return failed.groupBy("consumer_group", "topic", "reconsume_times").agg(
        F.count_if("retry").alias("retries"),
        F.count_if(~F.col("retry")).alias("dead_letters"),
        F.min("entered_at").alias("first_at"),
        F.max("entered_at").alias("last_at"),
    )


def volumes(messages: DataFrame) -> DataFrame:
    """Messages by `topic` and `hour` (UTC) of their first store; each counts once, in the cell that stored it.

    `in_transactions` counts the messages of transactions, whatever their state. Body sizes are in bytes.
    """
    stored = tables.own(tables.once(messages, "topic", "transaction_id", "body_bytes", "stored_at", COPIED))
    return stored.groupBy("topic", tables.hour("stored_at")).agg(
        F.count("*").alias("messages"),
        F.count("transaction_id").alias("in_transactions"),
        F.sum("body_bytes").alias("body_bytes"),
        F.max("body_bytes").alias("max_body_bytes"),
    )


def _seconds(since: str | Column, until: str | Column) -> Column:
    """The seconds between two times, to the microsecond."""
    return (F.unix_micros(until) - F.unix_micros(since)) / 1_000_000
