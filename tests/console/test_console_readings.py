"""Promises of what tabs share: a reading is made once for all of them, and kept the longer, the more it took."""

import pytest

from console.pages import readings


@pytest.mark.parametrize(
    ("wanted_seconds", "took_seconds", "kept_seconds"),
    [(4, 0.01, 4), (4, 0.2, 30), (4, 2, 60), (100, 2, 100), (0, 2, 0)],
)
def test_a_reading_that_took_long_is_kept_for_longer_unless_none_is_to_be(
    wanted_seconds: float, took_seconds: float, kept_seconds: float
) -> None:
    assert readings.kept_seconds(wanted_seconds, took_seconds) == pytest.approx(kept_seconds)


def test_requests_of_one_moment_share_a_reading() -> None:
    times = iter((1, 2))
    shared = readings.LatestReadings()

    def read() -> int:
        return next(times)

    assert [shared.of(read), shared.of(read)] == [1, 1]
