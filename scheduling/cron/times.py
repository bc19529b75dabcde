"""The times of a cron expression in a time zone, as in Debian's cron when clocks change."""

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from store.errors import MessageIllegal

MICROSECOND = timedelta(microseconds=1)
# Names in the time zone database that are refused: they depend on the machine, or are no time zone.
NO_ZONES = frozenset(("localtime", "posixrules", "Factory"))


class Times(CronSim):
    """CronSim for zones where clocks change by half an hour, such as Lord Howe. CronSim itself advances by whole hours.

    After such a change a step of an hour ends at the wrong minute. So this class begins each hour at its first second
    (backwards: at its last second), and tries its minutes one by one.
    """

    def advance_hour(self) -> bool:
        """Advances to the next hour of the expression. Returns whether the time has changed."""
        return super().advance_hour() and self._move(minute=0, second=0)

    def reverse_hour(self) -> bool:
        """Goes back to the previous hour of the expression. Returns whether the time has changed."""
        return super().reverse_hour() and self._move(minute=59, second=59)

    def advance_minute(self) -> bool:
        """Advances to the next minute of the expression, or to the next hour. Returns whether the time has changed."""
        return self._seek(end=0)

    def reverse_minute(self) -> bool:
        """Goes back to a minute of the expression, or to the previous hour. Returns whether the time has changed."""
        return self._seek(end=59)

    def _move(self, minute: int, second: int) -> bool:
        """Sets minute and second. A local time that a change of clocks skips becomes a time that exists."""
        moved = self.dt.replace(minute=minute, second=second)
        self.dt = moved if moved.tzinfo is None else moved.astimezone(UTC).astimezone(moved.tzinfo)
        return True

    def _seek(self, end: int) -> bool:
        """Goes minute by minute to a minute of the expression, or to the minute with which the next hour begins."""
        if self.dt.minute in self.minutes:
            return False
        self.dt = self.dt.replace(second=end)
        self.tick(seconds=60)
        while self.dt.minute not in self.minutes and self.dt.minute != end:
            self.tick(seconds=60)
        return True


def validate(cron: str, time_zone: str) -> None:
    """Raises MessageIllegal for an invalid cron expression or an unknown time zone."""
    if time_zone in NO_ZONES or time_zone not in zoneinfo.available_timezones():
        raise MessageIllegal(f"time_zone {time_zone[:60]!r} is unknown: give a name such as UTC or Europe/Berlin.")
    try:
        CronSim(cron, datetime.now(UTC))
    except CronSimError as problem:
        raise MessageIllegal(
            f"cron {cron[:60]!r} cannot be read ({problem}): give minute, hour, day of month, month and day "
            "of week, such as `0 3 * * MON-FRI`; a sixth field in front is the seconds."
        ) from problem


def after(cron: str, time_zone: str, moment: datetime) -> Iterator[datetime]:
    """The times after a moment, in UTC, the earliest first, up to 50 years ahead, which is the limit of cronsim."""
    latest = moment
    for at in _times(cron, time_zone, moment):
        # When a clock is set back, a local time occurs twice, and cronsim may begin with the first occurrence.
        if at > latest:
            latest = at
            yield at


def before(cron: str, time_zone: str, moment: datetime) -> Iterator[datetime]:
    """The times before a moment, in UTC, the latest first; they are the same times as in `after`."""
    earliest = moment
    # Begins 3 h later, more than any clock is set back: then cronsim finds both times of an hour that occurs twice.
    for at in _times(cron, time_zone, moment + timedelta(hours=3), reverse=True):
        if at < earliest and next(after(cron, time_zone, at - MICROSECOND), None) == at:
            earliest = at
            yield at


def _times(cron: str, time_zone: str, moment: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    """The times that cronsim finds, converted to UTC. They end where Python's calendar ends, in the time zone or in
    UTC.
    """
    try:
        found = Times(cron, moment.astimezone(ZoneInfo(time_zone)), reverse=reverse)
        while True:
            yield next(found).astimezone(UTC)
    except (StopIteration, OverflowError, ValueError):
        return


def between(cron: str, time_zone: str, first: datetime, end: datetime) -> list[datetime]:
    """The times from `first` up to `end`, both included."""
    return list(takewhile(lambda at: at <= end, after(cron, time_zone, first - MICROSECOND)))


def latest(cron: str, time_zone: str, first: datetime, end: datetime, count: int) -> list[datetime]:
    """The last `count` times from `first` on and before `end`, the earliest first."""
    found = takewhile(lambda at: at >= first, before(cron, time_zone, end))
    return list(islice(found, count))[::-1]
