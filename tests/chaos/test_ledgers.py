"""The books of whoever survives the accidents show every flaw."""

import pytest

from tests.chaos.ledgers import Ledger, Place


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

    told = ledger.flaws((Place(0, offset), body) for body, offset in found)

    assert [one for one in told if one.startswith(flaw)]
