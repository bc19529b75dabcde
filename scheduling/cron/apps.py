"""Schedules as a Django app, and what they add to the broker."""

from typing import ClassVar

from store.process import doors
from store.process.doors import To

TICKS = (doors.Tick("schedules.fire", 2.0),)
LINKS = (doors.Link("subscriptions", "Schedules", "schedule", "schedules"),)
OPERATORS = ("schedule.fire", "schedule.pause")


class SchedulesConfig(doors.Door):
    """Messages at the times of a cron expression."""

    name = "scheduling.cron"
    label = "schedules"
    adds: ClassVar = {
        To.BEAT: "apps.TICKS",
        To.FALLBACK: "works.WORKS",
        To.PATHS: "operators.api.PATHS",
        To.PAGES: "operators.page.PAGES",
        To.SIDEBAR: "apps.LINKS",
        To.ACTIONS: "operators.actions.ACTIONS",
        To.OPERATORS: "apps.OPERATORS",
        To.METRICS: "operators.watching.METRICS",
        To.FINDINGS: "operators.watching.FINDINGS",
    }
