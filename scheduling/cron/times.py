"""The times of a cron expression in a time zone, as Debian's cron has them where clocks are changed."""

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from store.errors import MessageIllegal

MICROSECOND = timedelta(microseconds=1)
# Files beside the zones: what they say depends on the machine, or is no time zone.
NO_ZONES = frozenset(("localtime", "posixrules", "Factory"))


def validate(cron: str, time_zone: str) -> None:
    """Raises MessageIllegal for what is no cron expression, or no time zone."""
    if time_zone in NO_ZONES or time_zone not in zoneinfo.available_timezones():
        raise MessageIllegal(f"time_zone {time_zone[:60]!r} is unknown: give a name such as UTC or Europe/Berlin.")
    try:
        CronSim(cron, datetime.now(UTC))
    except CronSimError as problem:
        raise MessageIllegal(
            f"cron {cron[:60]!r} cannot be read ({problem}): give minute, hour, day of month, month and day of week, "
            "or a field of seconds before them, such as `0 3 * * MON-FRI`."
        ) from problem


def after(cron: str, time_zone: str, moment: datetime) -> Iterator[datetime]:
    """The times later than a moment, in UTC, in their order; none further ahead than cronsim looks, 50 years."""
    latest = moment
    for at in _times(cron, time_zone, moment):
        # A clock that was set back passes a moment twice; cronsim may begin with the first.
        if at > latest:
            latest = at
            yield at


def before(cron: str, time_zone: str, moment: datetime) -> Iterator[datetime]:
    """The times earlier than a moment, in UTC, the latest first. Each is one of `after`."""
    earliest = moment
    # By more than the clock may be set back: cronsim then meets both hours.
    for at in _times(cron, time_zone, moment + timedelta(hours=3), reverse=True):
        if at < earliest and next(after(cron, time_zone, at - MICROSECOND), None) == at:
            earliest = at
            yield at


def _times(cron: str, time_zone: str, moment: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    """What cronsim finds, in UTC, up to the end of the calendar: that of the time zone, or that of UTC."""
    try:
        found = CronSim(cron, moment.astimezone(ZoneInfo(time_zone)), reverse=reverse)
        while True:
            yield next(found).astimezone(UTC)
    except (StopIteration, OverflowError, ValueError):
        return


def between(cron: str, time_zone: str, first: datetime, end: datetime) -> list[datetime]:
    """The times from `first` up to `end`, both included."""
    return list(takewhile(lambda at: at <= end, after(cron, time_zone, first - MICROSECOND)))


def latest(cron: str, time_zone: str, first: datetime, end: datetime, count: int) -> list[datetime]:
    """The last `count` times from `first` up to before `end`, in their order."""
    found = takewhile(lambda at: at >= first, before(cron, time_zone, end))
    return list(islice(found, count))[::-1]
