"""Forecasts: how many delayed messages are due in each of the coming minutes, without counting them one by one."""

from collections import defaultdict

from scheduling import overview
from store import blocking
from store.statements import Statement

ESTIMATE_TIMERS = Statement(__file__, "estimate_timers")
FORECAST_LEVELS = Statement(__file__, "forecast_levels")
FORECAST_TIMERS = Statement(__file__, "forecast_timers")

MINUTES = 60
# Timers that are counted; what is due behind them is estimated. Reading 10,000 by their index takes some 5 ms.
MAX_COUNTED_TIMERS = 10_000


def levels() -> dict[int, list[int]]:
    """Per queue of the schedule topic that has a backlog: deliveries in each of the next MINUTES minutes, exactly."""
    found: dict[int, list[int]] = defaultdict(lambda: [0] * MINUTES)
    backlogs = [row for row in overview.backlogs() if row.backlog]
    waiting = {name: [getattr(row, name) for row in backlogs] for name in ("queue_id", "topic_id", "low", "high")}
    for row in blocking.read(FORECAST_LEVELS, {**waiting, "minutes": MINUTES}):
        found[row.queue_id][row.minute - 1] = row.deliveries
    return dict(found)


def timers() -> tuple[list[int], bool]:
    """Timers due in each of the next MINUTES minutes, and whether the later ones of them are estimated."""
    rows = blocking.read(FORECAST_TIMERS, {"minutes": MINUTES, "max_counted": MAX_COUNTED_TIMERS})
    deliveries = [0] * MINUTES
    for row in rows:
        deliveries[row.minute - 1] = row.deliveries
    estimated = bool(rows) and rows[0].counted >= MAX_COUNTED_TIMERS
    if estimated:
        # The last minute that was counted was not counted to its end.
        for minute in range(rows[-1].minute, MINUTES + 1):
            deliveries[minute - 1] = max(_estimate(minute), deliveries[minute - 1])
    return deliveries, estimated


def _estimate(minute: int) -> int:
    [plan] = blocking.read(ESTIMATE_TIMERS, {"minute": minute})
    return int(plan[0][0]["Plan"]["Plan Rows"])
