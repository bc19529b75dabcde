"""The overview: the broker's state at a glance."""

import json
from datetime import datetime, timedelta

from django.conf import settings
from django.http import HttpRequest

from console.pages import counts, frame
from console.pages.counts import COUNT_LIMIT, Count
from delivery import registry
from delivery import stats as delivery_stats
from scheduling import stats as scheduling_stats
from store import stats as store_stats
from transactions import stats as transaction_stats
from transactions.stats import LastHour

CONSUMER_GROUPS = 10
MINUTES = 60


def figures(request: HttpRequest) -> dict[str, object]:
    """What the overview shows."""
    return {
        "now": store_stats.now(),
        **halves(),
        **ends(),
        "delayed": delayed(),
        "stored": store_stats.messages((MINUTES,)).kept,
        "ever_stored": store_stats.ever_stored(),
        **consumers(),
        "auto_create": settings.AUTO_CREATE_TOPICS,
        "broker": frame.address(request),
    }


def halves() -> dict[str, object]:
    """The tiles of transactions without an end."""
    found = transaction_stats.undecided(COUNT_LIMIT + 1)
    return {
        "pending": counts.up_to(COUNT_LIMIT, found.pending),
        "oldest_pending_at": found.oldest_pending_at,
        "discarded": counts.up_to(COUNT_LIMIT, found.discarded),
    }


def ends() -> dict[str, object]:
    """The tiles and the chart of the last hour's ends."""
    hour = transaction_stats.last_hour()
    return {
        "ends": hour,
        "committed": Count(sum(minute.commits for minute in hour.minutes), not hour.whole),
        "rolled_back": Count(sum(minute.rollbacks for minute in hour.minutes), not hour.whole),
        "chart": chart(hour),
        "chart_options": CHART_OPTIONS,
        "operations_limit": transaction_stats.MAX_COUNTED_OPERATIONS,
    }


def delayed() -> Count:
    """Messages that wait for a delay level or as timers."""
    timers = scheduling_stats.timers()
    backlog = sum(level.backlog for level in scheduling_stats.backlogs())
    return Count(backlog + timers, timers >= scheduling_stats.MAX_TIMERS)


def consumers() -> dict[str, object]:
    """The table of the first consumer groups by name, the furthest behind first."""
    page = counts.part(registry.page("", CONSUMER_GROUPS + 1), CONSUMER_GROUPS)
    groups = delivery_stats.of_groups(page.rows)
    return {
        "consumer_groups": sorted(groups, key=lambda group: group.lag, reverse=True),
        "more_consumer_groups": bool(page.after),
        "behind": sum(group.lag > 0 for group in groups),
    }


CHART_OPTIONS = json.dumps(
    {
        "animation": False,
        "maintainAspectRatio": False,
        "plugins": {"legend": {"display": False}},
        "scales": {
            "x": {"stacked": True, "grid": {"display": False}, "ticks": {"color": "#9ca3af", "maxTicksLimit": 7}},
            "y": {
                "stacked": True,
                "border": {"display": False},
                "grid": {"lineWidth": 0.5},
                "ticks": {"color": "#9ca3af", "precision": 0},
            },
        },
    }
)


def chart(hour: LastHour) -> str:
    """The ends of each minute as Chart.js wants them, a place for each of the hour's minutes."""
    commits = {minute.minute: minute.commits for minute in hour.minutes}
    rollbacks = {minute.minute: minute.rollbacks for minute in hour.minutes}
    series = (("Committed", commits, "--mq-committed"), ("Rolled back", rollbacks, "--mq-rolled-back"))
    minutes = minutes_to(hour.until)
    return json.dumps(
        {
            "labels": [minute.strftime("%H:%M") for minute in minutes],
            "datasets": [
                {
                    "label": label,
                    "data": [ended.get(minute, 0) for minute in minutes],
                    "backgroundColor": f"var({color})",
                    "borderRadius": 2,
                }
                for label, ended, color in series
            ],
        }
    )


def minutes_to(until: datetime) -> list[datetime]:
    """The minute of `until`, and before it the MINUTES minutes that the hour before `until` touches."""
    last = until.replace(second=0, microsecond=0)
    return [last - timedelta(minutes=ago) for ago in range(MINUTES, -1, -1)]
