"""The overview: the broker's state at a glance."""

import json

from django.conf import settings
from django.http import HttpRequest

from console.pages import frame
from console.reads import clock, consumers, delays, totals

CONSUMER_GROUPS = 10


def figures(request: HttpRequest) -> dict[str, object]:
    """What the overview shows."""
    now = clock.now()
    ends = totals.ends(now)
    groups = consumers.page("", CONSUMER_GROUPS)
    return {
        "now": now,
        "halves": totals.halves(),
        "ends": ends,
        "committed": sum(ends.committed),
        "rolled_back": sum(ends.rolled_back),
        "chart": chart(ends),
        "chart_options": CHART_OPTIONS,
        "delayed": delays.waiting(),
        "log": totals.log(),
        "consumer_groups": sorted(groups.groups, key=lambda group: group.lag, reverse=True),
        "more_consumer_groups": bool(groups.after),
        "behind": sum(group.lag > 0 for group in groups.groups),
        "operations_limit": totals.OPERATIONS,
        "auto_create": settings.AUTO_CREATE_TOPICS,
        "broker": frame.address(request),
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


def chart(ends: totals.Ends) -> str:
    """The decisions per minute as Chart.js wants them."""
    series = (("Committed", ends.committed, "--mq-committed"), ("Rolled back", ends.rolled_back, "--mq-rolled-back"))
    return json.dumps(
        {
            "labels": [minute.strftime("%H:%M") for minute in ends.minutes],
            "datasets": [
                {
                    "label": label,
                    "data": data,
                    "backgroundColor": f"var({color})",
                    "borderRadius": 2,
                }
                for label, data, color in series
            ],
        }
    )
