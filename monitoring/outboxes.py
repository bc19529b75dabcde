"""The metrics of outboxes, as the processes that drain them note them."""

from collections.abc import Callable

from monitoring.scrape import ReadOnce, Sample, Shared
from outboxes.models import Outbox
from outboxes.registry import MAX_OUTBOXES
from store import stats as store_stats


def _of_each(number: Callable[[Outbox], float]) -> Callable[[ReadOnce], list[Sample]]:
    def read(_: ReadOnce) -> list[Sample]:
        return [((row.name,), number(row)) for row in Outbox.objects.order_by("name")[:MAX_OUTBOXES]]

    return read


def _oldest_seconds(row: Outbox) -> float:
    return 0.0 if row.oldest_at is None else max(0.0, (store_stats.now() - row.oldest_at).total_seconds())


METRICS = (
    Shared(
        "mqbroker_outbox_rows_waiting",
        "Rows of an outbox that were not drained at the latest look, counted to 100,000.",
        _of_each(lambda row: row.waiting),
        labels=("outbox",),
    ),
    Shared(
        "mqbroker_outbox_oldest_seconds",
        "For how long the oldest of them has waited; 0 without one.",
        _of_each(_oldest_seconds),
        labels=("outbox",),
    ),
    Shared(
        "mqbroker_outbox_rows_drained_total",
        "Rows of an outbox whose messages were stored.",
        _of_each(lambda row: row.drained),
        labels=("outbox",),
        counter=True,
    ),
    Shared(
        "mqbroker_outbox_rows_refused_total",
        "Rows of an outbox that no message could be made of.",
        _of_each(lambda row: row.refused),
        labels=("outbox",),
        counter=True,
    ),
    Shared(
        "mqbroker_outbox_fails",
        "1 while an outbox cannot be drained, else 0.",
        _of_each(lambda row: row.failure is not None),
        labels=("outbox",),
    ),
)
