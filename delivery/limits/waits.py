"""Waits: the values of a group's limits whose messages wait, and the reasons; for the console."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from delivery.limits import keys
from delivery.limits.bounds import Limit, Limits
from store.cells import cells
from store.db import sync
from store.db.statements import Statement


class ValueStanding(NamedTuple):
    """A value in a topic: the number of its waiting messages that were read, the number of its deliveries that count,
    and the seconds until its bucket is full.
    """

    topic: str
    value: str
    waiting: int
    in_flight: int
    due_seconds: float


FIND_VALUES_OF_GROUP = Statement(__file__, "find_values_of_group", ValueStanding)

# How many values each cell returns, and how many the page shows: the values with the most waiting messages.
MAX_VALUES = 1000
MAX_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Wait:
    """A value at its limit. `waiting` counts messages that the group has read but not handed out; an ordered group
    reads most messages only later.
    """

    topic: str
    value: str
    waiting: int
    why: str


def of_group(group_id: int, kept: object, *, is_ordered: bool) -> list[Wait]:
    """The values of a group that are at their limits, at most MAX_SHOWN: the values with most waiting messages first.

    `kept`: the limits in the group's row; None: no limits.
    """
    if kept is None:
        return []
    limits = Limits.of(kept)
    parameters = {
        "group_id": group_id,
        "of_group": limits.by == keys.GROUP,
        "max_key": keys.MAX_KEY,
        "max_values": MAX_VALUES,
    }
    of_cells = cells.ask(lambda: sync.read(FIND_VALUES_OF_GROUP, parameters)).values()
    found = [wait for rows in of_cells for wait in _waits(limits, rows, is_ordered=is_ordered)]
    return sorted(found, key=lambda wait: (-wait.waiting, wait.topic, wait.value))[:MAX_SHOWN]


def _waits(limits: Limits, rows: Iterable[ValueStanding], *, is_ordered: bool) -> Iterable[Wait]:
    for row in rows:
        limit = limits.limit(row.value)
        if (row.waiting or is_ordered) and not limit.room(row.in_flight, row.due_seconds).messages:
            yield Wait(row.topic, keys.readable(row.value), row.waiting, _why(limit, row))


def _why(limit: Limit, row: ValueStanding) -> str:
    reasons = []
    if limit.in_flight is not None and row.in_flight >= limit.in_flight:
        reasons.append(f"{row.in_flight} in flight of at most {limit.in_flight}")
    if (wait := Limit(per_second=limit.per_second, burst=limit.burst).room(0, row.due_seconds)).messages == 0:
        reasons.append(f"{limit.per_second:g} a second, the next in {wait.wait_seconds:.1f} s")
    return "; ".join(reasons)


def described(kept: object) -> str:
    """The limits in a group's row in words; empty without limits."""
    if kept is None:
        return ""
    limits = Limits.of(kept)
    of_what = "" if limits.by == keys.GROUP else f" of each {limits.by}"
    own = f"; {len(limits.values)} values have their own" if limits.values else ""
    return f"{_bounds(limits)}{of_what}{own}"


def _bounds(limit: Limit) -> str:
    found = [] if limit.in_flight is None else [f"{limit.in_flight} in flight"]
    if limit.per_second is not None:
        found.append(f"{limit.per_second:g} a second, {limit.size} at once")
    return "; ".join(found) or "none"
