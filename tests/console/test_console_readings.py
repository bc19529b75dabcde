"""Promises of what tabs share: a reading is made once for all, is kept longer where it took long, and ages truly."""

import pytest

from console.pages import readings


@pytest.mark.parametrize(
    ("wanted_seconds", "took_seconds", "age_seconds", "kept_seconds"),
    [
        (4, 0.01, 0.01, 4),
        (4, 0.04, 0.04, 6),
        (4, 0.2, 0.2, 8.8),
        (4, 2, 2, 7),
        # Made of another reading, which was kept.
        (4, 0.2, 6, 3),
        (4, 20, 20, 0.5),
        (100, 2, 2, 100),
        (0, 2, 2, 0),
    ],
)
def test_a_reading_that_took_long_is_kept_for_longer_until_it_is_9_s_old(
    wanted_seconds: float, took_seconds: float, age_seconds: float, kept_seconds: float
) -> None:
    assert readings.kept_seconds(wanted_seconds, took_seconds, age_seconds) == pytest.approx(kept_seconds)


def test_requests_of_one_moment_share_a_reading() -> None:
    times = iter((1, 2))
    shared = readings.LatestReadings()

    def read() -> int:
        return next(times)

    assert [shared.of(read)[0], shared.of(read)[0]] == [1, 1]


def test_a_reading_is_as_old_as_the_oldest_that_it_is_made_of() -> None:
    shared = readings.LatestReadings()

    def inner() -> str:
        return "inner"

    def outer() -> str:
        return shared.of(inner)[0]

    _, before = shared.of(inner)
    _, age = shared.of(outer)
    _, later = shared.of(outer)

    assert before <= age <= later
