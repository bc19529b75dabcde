"""Laws of the times of cron expressions, in zones whose clocks are changed."""

from datetime import UTC, datetime, timedelta
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.cron import times

ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Tehran"]
)
MINUTES = st.sampled_from(["*", "0", "30", "59", "*/15", "0,20,45"])
HOURS = st.sampled_from(["*", "0", "1", "2", "3", "23", "1-3", "*/2"])
DAYS = st.sampled_from(["*", "1", "L", "28-31"])
SECONDS = st.sampled_from(["", "0 ", "30 ", "*/20 "])
WEEKDAYS = st.sampled_from(["*", "SUN", "MON-FRI", "0#1"])
CRONS = st.builds("{}{} {} {} * {}".format, SECONDS, MINUTES, HOURS, DAYS, WEEKDAYS)
YEAR = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = st.builds(
    lambda minutes, micro: YEAR + timedelta(minutes=minutes, microseconds=micro),
    st.integers(0, 2 * 366 * 24 * 60),
    st.integers(0, 60_000_000),
)


# A step of fifty years is slow on a machine that is busy.
@settings(deadline=None)
@given(CRONS, ZONES, MOMENTS)
def test_times_are_later_than_the_moment_and_in_their_order(cron: str, zone: str, moment: datetime) -> None:
    found = list(islice(times.after(cron, zone, moment), 20))

    assert found == sorted(set(found))
    assert found[0] > moment


@settings(deadline=None)
@given(CRONS, ZONES, MOMENTS, st.integers(1, 19))
def test_the_times_after_one_of_them_are_those_that_followed_it(
    cron: str, zone: str, moment: datetime, number: int
) -> None:
    found = list(islice(times.after(cron, zone, moment), 40))

    assert list(islice(times.after(cron, zone, found[number]), 20)) == found[number + 1 : number + 21]


@settings(deadline=None)
@given(CRONS, ZONES, MOMENTS, st.integers(1, 8))
def test_the_latest_before_a_moment_are_the_last_of_all(cron: str, zone: str, moment: datetime, count: int) -> None:
    found = list(islice(times.after(cron, zone, moment), 30))
    end = found[-1] + times.MICROSECOND

    assert times.latest(cron, zone, found[0], end, count) == found[-count:]
    assert times.between(cron, zone, found[0], found[-1]) == found
