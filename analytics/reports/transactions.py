"""Reports of transactions: their outcomes, the time until their decision, their checks, and discards."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.reports import tables

STATES = ("COMMITTED", "ROLLED_BACK", "DISCARDED", "PREPARED")


def outcomes(transactions: DataFrame, messages: DataFrame) -> DataFrame:
    """Transactions by `topic`, `producer_group` and `hour` (UTC) of their `prepared_at`, with a count for each state.

    `messages` is the number of their messages in the topic. A transaction with messages of several topics counts once
    in each topic; if the export lacks its messages, the topic is null.
    """
    sent = tables.once(messages, "transaction_id", "topic").where("transaction_id IS NOT NULL")
    by_topic = sent.groupBy("transaction_id", "topic").agg(F.count("*").alias("sent"))
    found = transactions.select("transaction_id", "producer_group", "state", tables.hour("prepared_at"))
    return (
        found.join(by_topic, "transaction_id", "left")
        .groupBy("topic", "producer_group", "hour")
        .agg(
            F.count("*").alias("transactions"),
            *(F.count_if(F.col("state") == state).alias(state.lower()) for state in STATES),
            F.coalesce(F.sum("sent"), F.lit(0)).alias("messages"),
        )
    )


def decision_times(transactions: DataFrame) -> DataFrame:
    """Seconds from the store of a transaction's messages to its end or discard: p50, p95, p99 and maximum.

    Grouped by `producer_group`, `state` and `decided_by`. Transactions without a decision are left out.
    """
    by = ("producer_group", "state", "decided_by")
    return (
        transactions.where("decided_at IS NOT NULL")
        .groupBy(*by)
        .agg(F.count("*").alias("transactions"), *tables.percentiles("seconds_to_decision", "seconds"))
    )


def answers(checks: DataFrame, transactions: DataFrame) -> DataFrame:
    """Check attempts by `producer_group`, `endpoint_url`, `counted`, HTTP `status`, `answer` and `reason`.

    `checks` is the number of attempts; latencies are in ms. The group is null if the export lacks the transaction.
    """
    by = ("producer_group", "endpoint_url", "counted", "status", "answer", "reason")
    groups = transactions.select("transaction_id", "producer_group")
    return (
        checks.join(groups, "transaction_id", "left")
        .groupBy(*by)
        .agg(F.count("*").alias("checks"), *tables.percentiles("latency_ms", "ms"))
    )


def discards(transactions: DataFrame) -> DataFrame:
    """Transactions that the broker gave up, by `producer_group`, `state`, `decided_by` and `remark`, the reason.

    They are in the state DISCARDED, or the broker rolled them back because their log was about to be dropped.
    Transactions that an operator has since resumed or resolved are not counted. `messages` is the number of their
    messages, `most_checks` the highest number of counted checks.
    """
    return (
        transactions.where(_given_up())
        .groupBy("producer_group", "state", "decided_by", "remark")
        .agg(
            F.count("*").alias("transactions"),
            F.sum("messages").alias("messages"),
            F.max("check_times").alias("most_checks"),
            F.min("decided_at").alias("first_at"),
            F.max("decided_at").alias("last_at"),
        )
    )


def _given_up() -> Column:
    return (F.col("state") == "DISCARDED") | (F.col("decided_by") == "limit")
