"""The additions of outboxes to the parts of the broker."""

from store.process.doors import Adds, Link, To

ADDS: Adds = {
    To.FALLBACK: "works.WORKS",
    To.CLOSED_FIRST: "works.CLOSED_FIRST",
    To.SEALED: "models.SEALED",
    To.PATHS: "operators.api.PATHS",
    To.PAGES: "operators.page.PAGES",
    To.SIDEBAR: (Link("subscriptions", "Outboxes", "outbox", "outboxes"),),
    To.ACTIONS: "operators.actions.ACTIONS",
    To.METRICS: "operators.watching.METRICS",
    To.FINDINGS: "operators.watching.FINDINGS",
}
