"""The ledgers find every flaw."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.chaos.books import Books, Found, summary
from tests.chaos.delays import Promises
from tests.chaos.ledgers import Ledger, Place

DUE = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("found", "flaw"),
    [
        ([("a", 0)], "b was acknowledged and is gone"),
        ([("a", 0), ("b", 2), ("x", 1)], "b was acknowledged at Place(queue_id=0, queue_offset=1) and is at "),
        ([("a", 0), ("b", 1), ("b", 2)], "b is there 2 times"),
        ([("a", 0), ("b", 1), ("c", 2)], "c was rolled back and is visible"),
        ([("a", 0), ("b", 1), ("x", 2)], "x is there and was never acknowledged"),
        ([("a", 0), ("b", 1), ("a", 3)], "queue 0 has a hole before 3"),
    ],
)
def test_the_ledger_catches_every_flaw(found: list[tuple[str, int]], flaw: str) -> None:
    ledger = Ledger({"a": Place(0, 0), "b": Place(0, 1)}, {"c"})
    assert ledger.flaws([(Place(0, 0), "a"), (Place(0, 1), "b")]) == []

    flaws = ledger.flaws((Place(0, offset), body) for body, offset in found)

    assert [one for one in flaws if one.startswith(flaw)]


@pytest.mark.parametrize(
    ("found", "late_ms", "flaw"),
    [
        ([("a", 0)], 0, "b is lost"),
        ([("a", 0), ("b", 1), ("b", 2)], 0, "b is there 2 times"),
        ([("a", 0), ("b", 1), ("x", 2)], 0, "x was never sent"),
        ([("a", 0), ("b", 2)], 0, "queue 0 has a hole before 2"),
        ([("a", 0), ("b", 1)], -1, "b is 0:00:00.001000 early"),
    ],
)
def test_the_books_of_delayed_messages_catch_every_flaw(found: list[tuple[str, int]], late_ms: int, flaw: str) -> None:
    promises = Promises({"a": "1", "b": "2"}, {"a": DUE, "b": DUE})
    places = [(Place(0, 0), "a"), (Place(0, 1), "b")]
    assert promises.flaws(places, {"a": DUE, "b": DUE}) == []

    visible_at = {"a": DUE, "b": DUE + timedelta(milliseconds=late_ms)}
    flaws = promises.flaws([(Place(0, offset), body) for body, offset in found], visible_at)

    assert flaws == [flaw]


GOOD: Found = {"orders": [(Place(0, 0), "a"), (Place(0, 1), "b"), (Place(1, 0), "c")]}
GOOD_STATES = {"1": "COMMITTED", "2": "ROLLED_BACK"}


def books() -> Books:
    return Books(
        begun={"a", "b", "c", "d"},
        visible={"a": ("orders", Place(0, 0)), "b": ("orders", Place(0, 1)), "c": None},
        rolled_back={"d"},
        together=[("a", "b")],
        decisions={"1": "COMMIT", "2": "ROLLBACK"},
        delayed={"c": ("3", DUE)},
        acked_at={"a": 5.0},
        received_at={"a": 4.0, "b": 4.0, "c": 4.0},
    )


@pytest.mark.parametrize(
    ("kind", "entries", "states", "late_ms", "received_at"),
    [
        ("lost", [("a", 0, 0), ("b", 0, 1)], {}, 0, {}),
        ("phantom", [("a", 0, 0), ("b", 0, 1), ("c", 1, 0), ("x", 1, 1)], {}, 0, {}),
        ("twice", [("a", 0, 0), ("b", 0, 1), ("c", 1, 0), ("c", 1, 1)], {}, 0, {}),
        ("holes", [("a", 0, 0), ("b", 0, 1), ("c", 1, 1)], {}, 0, {}),
        ("moved", [("b", 0, 0), ("a", 0, 1), ("c", 1, 0)], {}, 0, {}),
        ("torn batches", [("a", 0, 0), ("c", 1, 0)], {}, 0, {}),
        ("wrong or double outcomes", [("a", 0, 0), ("b", 0, 1), ("c", 1, 0), ("d", 1, 1)], {}, 0, {}),
        ("wrong or double outcomes", None, {"1": "ROLLED_BACK"}, 0, {}),
        ("early", None, {}, -1, {}),
        ("never delivered", None, {}, 0, {"b": None}),
        ("delivered after the ack", None, {}, 0, {"a": 6.0}),
    ],
)
def test_the_books_of_a_storm_catch_every_flaw(
    kind: str,
    entries: list[tuple[str, int, int]] | None,
    states: dict[str, str],
    late_ms: int,
    received_at: dict[str, float | None],
) -> None:
    assert not any(books().flaws(GOOD, GOOD_STATES, {"c": DUE}).values())

    flawed = books()
    given = flawed.received_at | received_at
    flawed.received_at = {body: at for body, at in given.items() if at is not None}
    found = GOOD if entries is None else {"orders": [(Place(queue, offset), body) for body, queue, offset in entries]}
    flaws = flawed.flaws(found, GOOD_STATES | states, {"c": DUE + timedelta(milliseconds=late_ms)})

    assert flaws[kind]
    assert f"{kind} 0" not in summary(flaws)
