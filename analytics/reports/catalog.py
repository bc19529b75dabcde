"""All reports in the order of the page: their titles, explanations and functions."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from analytics.reports import deliveries, transactions
from analytics.reports.tables import Tables


@dataclass(frozen=True, slots=True)
class Report:
    """A report: its folder `name`, and the columns that order its rows; `-` before a column means highest first.

    The page draws a bar for the column `bar` of each row.
    """

    name: str
    title: str
    about: str
    order: tuple[str, ...]
    bar: str
    make: Callable[[Tables], DataFrame]


REPORTS = (
    Report(
        "outcomes",
        "Outcomes of transactions",
        "Transactions by topic, producer group and the hour (UTC) in which they were begun. One with messages of "
        "several topics counts in each; without a topic: the export lacks its messages, or their topic was deleted.",
        ("-hour", "topic", "producer_group"),
        "transactions",
        lambda of: transactions.outcomes(of.transactions, of.messages),
    ),
    Report(
        "decision_times",
        "Time to decision",
        "Seconds from the store of a transaction's messages to its end or discard. A percentile is the smallest value "
        "that so many of 100 do not exceed.",
        ("producer_group", "state", "decided_by"),
        "p95_seconds",
        lambda of: transactions.decision_times(of.transactions),
    ),
    Report(
        "answers",
        "Checks and answers",
        "Check attempts, with the latency of their calls in ms. Attempts that asked no endpoint are not counted.",
        ("-checks", "producer_group", "endpoint_url", "answer", "status", "reason"),
        "checks",
        lambda of: transactions.answers(of.checks, of.transactions),
    ),
    Report(
        "discards",
        "Discards, and why",
        "Transactions that were given up, as they stood at the export: discarded, or rolled back by the limit before "
        "their log was dropped.",
        ("-transactions", "producer_group", "state", "remark"),
        "transactions",
        lambda of: transactions.discards(of.transactions),
    ),
    Report(
        "lateness",
        "Lateness of delays",
        "Seconds from due to visible, of messages and retries. At a delay level, what is not visible waits, was "
        "recalled, or lost its topic. Without a level: those with a time of their own, once they are visible.",
        ("topic", "level"),
        "p99_seconds",
        lambda of: deliveries.lateness(of.entries, of.messages),
    ),
    Report(
        "timers",
        "Waiting timers",
        "Messages and retries that waited for a time of their own, and those that were due before the export, with the "
        "longest time since then in seconds.",
        ("-timers", "topic"),
        "timers",
        lambda of: deliveries.timers(of.timers, of.taken_at),
    ),
    Report(
        "retries",
        "Retries and dead letters",
        "By consumer group, the topic of the message, and the number of the retry. Ordered groups leave no entries.",
        ("consumer_group", "topic", "reconsume_times"),
        "retries",
        lambda of: deliveries.retries(of.entries, of.messages),
    ),
    Report(
        "volumes",
        "Volumes",
        "Messages by topic and the hour (UTC) in which they were stored, each once; bodies in bytes.",
        ("-hour", "topic"),
        "body_bytes",
        lambda of: deliveries.volumes(of.messages),
    ),
)
NAMES = tuple(report.name for report in REPORTS)
