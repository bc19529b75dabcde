"""The additions of schedules to the parts of the broker."""

from store.process.doors import Adds, Link, Tick, To

ADDS: Adds = {
    To.BEAT: (Tick("schedules.fire", 2.0, "scheduling.cron"),),
    To.FALLBACK: "works.WORKS",
    To.PATHS: "operators.api.PATHS",
    To.PAGES: "operators.page.PAGES",
    To.SIDEBAR: (Link("subscriptions", "Schedules", "schedule", "schedules"),),
    To.ACTIONS: "operators.actions.ACTIONS",
    To.OPERATORS: ("schedule.fire", "schedule.pause"),
    To.METRICS: "operators.watching.METRICS",
    To.FINDINGS: "operators.watching.FINDINGS",
}
