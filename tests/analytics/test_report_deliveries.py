"""The reports of what became visible, and of volumes: literal rows in, the rows of each report out."""

from typing import Any

from pyspark.sql import SparkSession

from analytics.reports import deliveries, transactions
from tests.analytics.frames import NOON, Frames, after, delayed, entry, message, rows, transaction


def test_a_message_that_was_stored_again_counts_once_also_where_its_first_row_was_dropped(frames: Frames) -> None:
    same: dict[str, Any] = {"message_id": "m1", "transaction_id": "a", "segment": 2}
    messages = frames.messages(
        message(1, transaction_id="a"),
        message(7, copy_of=1, **same),
        # The first row had left the broker when this one was exported: nothing says that it is a copy.
        message(9, copy_of=None, **same),
        # The first row was dropped before any export.
        message(8, message_id="m2", copy_of=2),
    )

    outcomes = rows(transactions.outcomes(frames.transactions(transaction("a", "COMMITTED")), messages))
    volumes = rows(deliveries.volumes(messages))

    assert [(row["transactions"], row["messages"]) for row in outcomes] == [(1, 1)]
    assert volumes == [
        {
            "topic": "orders",
            "hour": NOON,
            "messages": 2,
            "in_transactions": 1,
            "body_bytes": 20,
            "max_body_bytes": 10,
        }
    ]


def test_an_hour_begins_in_utc_whatever_the_zone_of_the_session(spark: SparkSession, frames: Frames) -> None:
    messages = frames.messages(
        message(1, stored_at=after(-0.000001)), message(2, stored_at=NOON), message(3, stored_at=after(3599.999999))
    )
    # Its hours begin at the half hours of UTC.
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        found = rows(deliveries.volumes(messages), "hour", "messages")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    assert found == [{"hour": after(-3600), "messages": 1}, {"hour": NOON, "messages": 2}]


def test_lateness_is_from_due_to_the_next_entry_of_the_message_in_its_topic(frames: Frames) -> None:
    messages = frames.messages(message(1), message(2), message(3), message(5, message_id="m2", copy_of=2))
    entries = frames.entries(
        delayed(0, due=10),
        entry(0, "orders", 10.25),
        # Released by its copy, in a later segment.
        delayed(1, due=20, log_offset=2),
        entry(1, "orders", 20.000001, log_offset=5),
        # Not released, or recalled.
        delayed(2, due=30, log_offset=3),
        # Another topic's, and an earlier one's, are no release of it.
        entry(0, "coupons", 31, log_offset=3),
        entry(2, "orders", -5, log_offset=3),
    )

    [found] = rows(deliveries.lateness(entries, messages))

    late = {"p50_seconds": 0.000001, "p95_seconds": 0.25, "p99_seconds": 0.25, "max_seconds": 0.25}
    assert found == {"topic": "orders", "level": 3, "delayed": 3, "visible": 2} | late


def test_each_retry_of_a_message_has_its_own_lateness(frames: Frames) -> None:
    retry = "%RETRY%coupons"
    entries = frames.entries(
        delayed(0, due=10, at=0, topic=retry, reconsume_times=1),
        entry(0, retry, 11, reconsume_times=1),
        delayed(1, due=40, at=20, topic=retry, reconsume_times=2),
        entry(1, retry, 43, reconsume_times=2),
    )

    [found] = rows(deliveries.lateness(entries, frames.messages(message(1))))

    assert (found["topic"], found["visible"], found["p50_seconds"], found["max_seconds"]) == (retry, 2, 1.0, 3.0)


def test_a_released_timer_has_its_lateness_to_the_microsecond_and_no_level(frames: Frames) -> None:
    entries = frames.entries(
        entry(0, "orders", 10.25, due_at=after(10)),
        entry(1, "orders", 12.000003, due_at=after(12), log_offset=2),
        # A retry with a delay of its own, and what was never delayed.
        entry(0, "%RETRY%coupons", 21, due_at=after(20), reconsume_times=1),
        entry(2, "orders", 30, log_offset=3),
    )

    found = rows(deliveries.lateness(entries, frames.messages()))

    assert [tuple(row.values()) for row in found] == [
        ("%RETRY%coupons", None, 1, 1, 1.0, 1.0, 1.0, 1.0),
        ("orders", None, 2, 2, 0.000003, 0.25, 0.25, 0.25),
    ]


def test_timers_that_were_due_before_the_export_are_overdue(frames: Frames) -> None:
    waiting = frames.timers(
        *({"topic": "orders", "due_at": after(due)} for due in (-90, -0.5, 0, 60)), {"topic": None, "due_at": after(5)}
    )

    found = rows(deliveries.timers(waiting, NOON))

    assert [tuple(row.values()) for row in found] == [(None, 1, 0, None, after(5)), ("orders", 4, 2, 90.0, after(-90))]


def test_retries_and_dead_letters_count_by_group_and_number_of_the_retry(frames: Frames) -> None:
    entries = frames.entries(
        entry(0, "orders", 0),
        entry(0, "%RETRY%coupons", 10, reconsume_times=1),
        entry(1, "%RETRY%coupons", 12, reconsume_times=1, log_offset=2),
        entry(2, "%RETRY%coupons", 40, reconsume_times=2),
        entry(0, "%DLQ%coupons", 50, reconsume_times=2),
        # Of a message that retention dropped before the export.
        entry(0, "%DLQ%DLQ%x", 60, reconsume_times=16, log_offset=99),
    )

    found = rows(deliveries.retries(entries, frames.messages(message(1), message(2))))

    assert [tuple(row.values()) for row in found] == [
        ("DLQ%x", None, 16, 0, 1, after(60), after(60)),
        ("coupons", "orders", 1, 2, 0, after(10), after(12)),
        ("coupons", "orders", 2, 1, 1, after(40), after(50)),
    ]
