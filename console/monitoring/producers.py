"""Producer groups as operators watch them: the metrics of their transactions, checks and endpoints."""

from console.monitoring.scrape import Metric
from transactions import stats as transaction_stats
from transactions.operations import totals

METRICS = (
    Metric(
        "mqbroker_half_messages",
        "Undecided transactions of a producer group; DISCARDED ones wait for an operator.",
        lambda reading: [((row.producer_group, row.state), row.halves) for row in reading.waiting],
        labels=("producer_group", "state"),
    ),
    Metric(
        "mqbroker_half_messages_by_topic",
        "Half messages of undecided transactions, by topic: RocketMQ's TransactionMetrics.",
        lambda reading: [
            ((row.topic, row.state), row.messages) for row in transaction_stats.by_topic(reading.namespace)
        ],
        labels=("topic", "state"),
    ),
    Metric(
        "mqbroker_transactions_total",
        "Transactions that ever ended in this state, counted in each of their topics: RocketMQ's "
        "rocketmq_commit_messages_total.",
        lambda reading: totals.by_end(reading.namespace),
        labels=("topic", "producer_group", "end"),
        counter=True,
    ),
    Metric(
        "mqbroker_oldest_half_message_seconds",
        "Age of the oldest undecided transaction of a producer group. It grows while the producer answers no checks.",
        lambda reading: [((row.producer_group, row.state), row.oldest_seconds) for row in reading.waiting],
        labels=("producer_group", "state"),
    ),
    Metric(
        "mqbroker_checks_last_hour",
        "Checks of the last hour by outcome: decided, unknown, unanswered, handed_out (to a poll), unreached.",
        lambda _: [((outcome,), count) for outcome, count in transaction_stats.checks().items()],
        labels=("outcome",),
    ),
    Metric(
        "mqbroker_half_to_end_seconds",
        "Time from the half message to the end, of the latest decided transactions.",
        lambda _: [((quantile,), seconds) for quantile, seconds in transaction_stats.seconds_undecided().items()],
        labels=("quantile",),
    ),
    Metric(
        "mqbroker_endpoints",
        "Endpoints of a producer group; open and disabled ones are not called.",
        lambda _: [((group, state), count) for group, state, count in transaction_stats.endpoints()],
        labels=("producer_group", "state"),
    ),
)
