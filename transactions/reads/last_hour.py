"""The commits and rollbacks of the last hour, by the minute."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from store.cells import cells
from store.db import sync
from store.db.statements import Statement
from store.naming import namespaces
from transactions.rows import MinuteOfEnds
from transactions.stats import MAX_COUNTED_OPERATIONS, OPERATIONS_SINCE

SECONDS_PER_HOUR = 3600


ENDS_BY_MINUTE = Statement(__file__, "ends_by_minute", MinuteOfEnds)


@dataclass(frozen=True, slots=True)
class LastHour:
    """Commits and rollbacks of the hour before `until`, by the minute.

    If there were more than MAX_COUNTED_OPERATIONS, only the latest are counted, and `since` is later than an hour
    before.
    """

    since: datetime
    until: datetime
    whole: bool
    minutes: list[MinuteOfEnds]


def read(namespace: str | None = None) -> LastHour:
    """The ends of the last hour: the operations that `stats.decisions` counts for the same hour.

    With `namespace`, only ends of its producer groups.
    """
    hours = list(cells.ask(lambda: _read_cell(namespace)).values())
    by_minute: dict[datetime, MinuteOfEnds] = {}
    for row in (row for hour in hours for row in hour.minutes):
        by_minute[row.minute] = _both(by_minute[row.minute], row) if row.minute in by_minute else row
    return LastHour(
        since=max(hour.since for hour in hours),
        until=hours[0].until,
        whole=all(hour.whole for hour in hours),
        minutes=[by_minute[minute] for minute in sorted(by_minute)],
    )


def _both(one: MinuteOfEnds, other: MinuteOfEnds) -> MinuteOfEnds:
    first_at = min(one.first_at, other.first_at)
    return MinuteOfEnds(one.minute, first_at, one.commits + other.commits, one.rollbacks + other.rollbacks)


def _read_cell(namespace: str | None) -> LastHour:
    [hour] = sync.read(OPERATIONS_SINCE, {"seconds": [SECONDS_PER_HOUR]})
    since_id = max(hour.since_id, hour.next_id - MAX_COUNTED_OPERATIONS)
    starts = None if namespace is None else namespaces.starts(namespace)
    minutes = list(sync.read(ENDS_BY_MINUTE, {"since_id": since_id, "next_id": hour.next_id, "starts": starts}))
    whole = since_id == hour.since_id
    since = hour.since if whole or not minutes else minutes[0].first_at
    return LastHour(since, hour.since + timedelta(seconds=SECONDS_PER_HOUR), whole, minutes)
