"""Outboxes as a Django app, and what they add to the broker."""

from typing import ClassVar

from store.process import doors
from store.process.doors import To

LINKS = (doors.Link("subscriptions", "Outboxes", "outbox", "outboxes"),)


class OutboxesConfig(doors.Door):
    """Outboxes: messages that producers insert into a table of their own database."""

    name = "transactions.outboxes"
    adds: ClassVar = {
        To.FALLBACK: "works.WORKS",
        To.CLOSED_FIRST: "works.CLOSED_FIRST",
        To.SEALED: "models.SEALED",
        To.PATHS: "operators.api.PATHS",
        To.PAGES: "operators.page.PAGES",
        To.SIDEBAR: "apps.LINKS",
        To.ACTIONS: "operators.actions.ACTIONS",
        To.METRICS: "operators.watching.METRICS",
        To.FINDINGS: "operators.watching.FINDINGS",
    }
