"""The reports of transactions: literal rows in, the rows of each report out."""

from analytics.reports import transactions
from tests.analytics.frames import NOON, Frames, Row, after, message, rows, transaction


def test_each_transaction_counts_once_in_each_topic_of_its_messages(frames: Frames) -> None:
    messages = frames.messages(
        message(1, "orders", transaction_id="a"),
        message(2, "orders", transaction_id="a"),
        message(3, "coupons", transaction_id="a"),
        message(4, "orders", transaction_id="b"),
        message(5, "orders"),
    )
    ended = frames.transactions(
        transaction("a", "COMMITTED"), transaction("b", "DISCARDED"), transaction("dropped", "PREPARED", None)
    )

    found = rows(transactions.outcomes(ended, messages))

    def outcome(topic: str | None, sent: int, **states: int) -> Row:
        counts = {"committed": 0, "rolled_back": 0, "discarded": 0, "prepared": 0} | states
        known = {"topic": topic, "producer_group": "shop", "hour": NOON, "transactions": sum(states.values())}
        return known | counts | {"messages": sent}

    assert found == [
        outcome(None, 0, prepared=1),
        outcome("coupons", 1, committed=1),
        outcome("orders", 3, committed=1, discarded=1),
    ]


# By the producer group of the transactions, each of which took another whole number of seconds.
PERCENTILES = {
    "one of five seconds": ([5.0], (5.0, 5.0, 5.0, 5.0)),
    "two": ([2.0, 1.0], (1.0, 2.0, 2.0, 2.0)),
    "a hundred": ([float(second) for second in range(1, 101)], (50.0, 95.0, 99.0, 100.0)),
    "a hundred and one": ([float(second) for second in range(1, 102)], (51.0, 96.0, 100.0, 101.0)),
}


def test_a_percentile_is_the_lowest_value_that_so_many_of_a_hundred_do_not_exceed(frames: Frames) -> None:
    ended = frames.transactions(
        *(
            transaction(f"{group} {each}", "COMMITTED", each, producer_group=group)
            for group, (seconds, _) in PERCENTILES.items()
            for each in seconds
        )
    )

    found = rows(transactions.decision_times(ended))

    columns = ("transactions", "p50_seconds", "p95_seconds", "p99_seconds", "max_seconds")
    assert {row["producer_group"]: tuple(row[name] for name in columns) for row in found} == {
        group: (len(seconds), *expected) for group, (seconds, expected) in PERCENTILES.items()
    }


def test_times_to_decision_are_those_of_decisions_each_kind_by_itself(frames: Frames) -> None:
    ended = frames.transactions(
        transaction("a", "COMMITTED", 1.0),
        transaction("b", "COMMITTED", 9.0, decided_by="check"),
        transaction("c", "DISCARDED", 40.0, decided_by=None, producer_group=None),
        transaction("d", "PREPARED", None),
    )

    found = rows(transactions.decision_times(ended), "producer_group", "state", "decided_by", "max_seconds")

    assert [tuple(row.values()) for row in found] == [
        (None, "DISCARDED", None, 40.0),
        ("shop", "COMMITTED", "check", 9.0),
        ("shop", "COMMITTED", "producer", 1.0),
    ]


def test_checks_are_counted_by_what_was_answered_also_without_a_latency(frames: Frames) -> None:
    asked = {"transaction_id": "a", "endpoint_url": "http://shop", "asked_at": NOON, "counted": True, "status": 200}
    checks = frames.checks(
        asked | {"answer": "COMMIT", "latency_ms": 10},
        asked | {"answer": "COMMIT", "latency_ms": 30},
        asked | {"answer": "COMMIT"},
        {"transaction_id": "of no export", "asked_at": NOON, "counted": False, "reason": "refused"},
    )

    found = rows(transactions.answers(checks, frames.transactions(transaction("a", "COMMITTED"))))

    columns = ("producer_group", "endpoint_url", "counted", "status", "answer", "reason", "checks")
    numbers = ("p50_ms", "p95_ms", "p99_ms", "max_ms")
    assert [tuple(row[name] for name in (*columns, *numbers)) for row in found] == [
        (None, None, False, None, None, "refused", 1, None, None, None, None),
        ("shop", "http://shop", True, 200, "COMMIT", None, 3, 10, 30, 30, 30),
    ]


def test_discards_are_what_stands_discarded_or_was_rolled_back_by_the_limit(frames: Frames) -> None:
    discarded = {"decided_by": "limit", "remark": "15 checks"}
    ended = frames.transactions(
        transaction("a", "DISCARDED", 40.0, check_times=15, messages=2, **discarded),
        transaction("b", "DISCARDED", 50.0, check_times=16, **discarded),
        transaction("c", "ROLLED_BACK", 60.0, decided_by="limit", remark="its log was dropped", check_times=15),
        # Retention dropped the operation that says why.
        transaction("d", "DISCARDED", 55.0, decided_by=None, check_times=15),
        transaction("resolved", "COMMITTED", 70.0, decided_by="operator"),
        transaction("no decider", "COMMITTED", 70.0, decided_by=None),
    )

    found = rows(transactions.discards(ended))

    assert [tuple(row.values()) for row in found] == [
        ("shop", "DISCARDED", None, None, 1, 1, 15, after(55), after(55)),
        ("shop", "DISCARDED", "limit", "15 checks", 2, 3, 16, after(40), after(50)),
        ("shop", "ROLLED_BACK", "limit", "its log was dropped", 1, 1, 15, after(60), after(60)),
    ]
