"""Shares: a process keeps so many things for all keys, and no key takes what others need."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from store.process.shares import Shares

KEYS = st.sampled_from(["a", "b", "c"])


@given(st.integers(8, 40), st.lists(st.tuples(KEYS, st.integers(1, 5), st.booleans())))
def test_no_key_has_more_than_five_eighths_and_all_together_no_more_than_there_are(
    most: int, calls: list[tuple[str, int, bool]]
) -> None:
    shares, held = Shares(most), Counter[str]()
    for key, places, is_taking in calls:
        if is_taking:
            may = held.total() + places <= most and held[key] + places <= most * 5 // 8
            assert shares.take(key, places) == may
            held[key] += places * may
        elif held[key] >= places:
            shares.give_back(key, places)
            held[key] -= places

        assert shares.taken == held.total()
        if held.total():
            assert held[shares.largest] == max(held.values())


def test_a_key_that_takes_all_it_may_leaves_room_to_another_one() -> None:
    shares = Shares(2_400)
    taken = sum(shares.take("greedy") for _ in range(5_000))

    assert (taken, shares.is_short("greedy"), shares.take("other")) == (1_500, True, True)
