"""Laws of the times of cron expressions, in zones whose clocks are changed."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
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


# Where clocks are changed in 2026: by an hour, by half an hour at Lord Howe.
CHANGES = st.sampled_from(
    [
        ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
        ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
        ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ]
)
HALF_A_DAY = timedelta(hours=12)


@settings(deadline=None)
@given(CHANGES, st.sets(st.integers(0, 5), min_size=1, max_size=3), st.sampled_from(["0", "0,15,30,45", "10,40", "59"]))
def test_around_a_change_of_clocks_each_minute_that_the_expression_matches_is_a_time(
    change: tuple[str, datetime], hours: set[int], minutes: str
) -> None:
    zone, at = change
    # With seconds in front, an expression follows the local clock alone.
    cron = f"0 {minutes} {','.join(map(str, hours))} * * *"
    first, end = at - HALF_A_DAY, at + HALF_A_DAY

    local = [(first + timedelta(minutes=number)).astimezone(ZoneInfo(zone)) for number in range(24 * 60)]
    expected = [at.astimezone(UTC) for at in local if at.hour in hours and str(at.minute) in minutes.split(",")]
    assert times.between(cron, zone, first, end - times.MICROSECOND) == expected
    assert times.latest(cron, zone, first, end, len(local)) == expected


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
@example("*/15 3 * * 0#1", "Australia/Lord_Howe", YEAR + timedelta(minutes=44160), 2)
@given(CRONS, ZONES, MOMENTS, st.integers(1, 8))
def test_the_latest_before_a_moment_are_the_last_of_all(cron: str, zone: str, moment: datetime, count: int) -> None:
    found = list(islice(times.after(cron, zone, moment), 30))
    end = found[-1] + times.MICROSECOND

    assert times.latest(cron, zone, found[0], end, count) == found[-count:]
    assert times.between(cron, zone, found[0], found[-1]) == found
