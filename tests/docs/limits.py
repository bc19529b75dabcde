"""Writes docs/limits.md, the limits of the broker: `.venv/bin/python -m tests.docs.limits`.

The values are those of the code and the defaults of the settings. test_limits_page.py goes beyond the limits of
requests, and compares each answer with the page.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from mqbroker.embedded.commands import ROOT

PAGE = ROOT / "docs" / "limits.md"
HEAD = """# Limits

Each limit, its default, the setting that changes it, and what a caller gets beyond it. A limit without a setting is
fixed. The page is generated from the code. A refused request stores nothing. Further limits:

- [Operations](operations.md#what-a-caller-can-take): memory, connections and time that one caller can take
- [Access](access.md#limits): rates and undecided transactions of one key, and of one namespace
- [Filters](filters.md), [fairness](fairness.md), [schedules](schedules.md): their own pages

"""
UNITS = {"bytes": ((1024**2, "MiB"), (1024, "KiB"), (1, "bytes")), "s": ((86400, "days"), (3600, "h"), (1, "s"))}


@dataclass(frozen=True)
class Limit:
    """A limit: what it limits, where its value is, its unit, and the answer beyond it.

    `place` is the name of a setting without its prefix, or MODULE:CONSTANT.
    """

    what: str
    place: str
    beyond: str
    unit: str = ""

    @property
    def setting(self) -> str:
        """The environment variable that changes the limit; empty if none does."""
        return "" if ":" in self.place else f"MQBROKER_{self.place}"

    @property
    def value(self) -> int:
        """The limit by default."""
        if self.setting:
            from mqbroker.environment import env

            return int(next(setting.default for setting in env.declared if setting.name == self.setting))
        module, _, constant = self.place.partition(":")
        found: int = getattr(import_module(module), constant)
        return found

    @property
    def shown(self) -> str:
        """The limit by default with its unit."""
        value = self.value
        for size, unit in UNITS.get(self.unit, ((1, self.unit),)):
            if value % size == 0:
                return f"{value // size:,} {unit}".strip()
        raise AssertionError(self)


FIELDS = "store.messages.fields"
LIMITS = {
    "Messages": (
        Limit("body of a message; bodies of a batch", "MAX_MESSAGE_BYTES", "413 `message_too_large`", "bytes"),
        Limit("properties, tags and keys", f"{FIELDS}:MAX_PROPERTIES_BYTES", "422 `properties_too_large`", "bytes"),
        Limit("properties of a message", "store.messages.properties:MAX_PROPERTIES", "422 `properties_too_large`"),
        Limit("sharding key", f"{FIELDS}:MAX_SHARDING_KEY", "422 `message_illegal`", "characters"),
        Limit("retries that a message asks for", "store.messages.rules:MAX_RECONSUME_TIMES", "422 `message_illegal`"),
        Limit("delay, or time until `deliver_at`", "MAX_TIMER_DELAY_SECONDS", "422 `delay_illegal`", "s"),
        Limit("messages of a batch", "scheduling.sending.batches:MAX_MESSAGES", "422 `batch_illegal`"),
        Limit("messages of a transaction", "transactions.operations.validation:MAX_MESSAGES", "422 `batch_illegal`"),
        Limit("operations of a bulk", "mqbroker.api.bulks:MAX_OPERATIONS", "422 `message_illegal`"),
        Limit("undecided transactions of a producer group", "MAX_UNDECIDED_PER_GROUP", "429 `rate_limited`"),
        Limit("checks that reach a producer", "TRANSACTION_CHECK_MAX", "an operator decides the transaction"),
        Limit("name of a topic or group", "store.naming.names:MAX_CHARACTERS", "422 `topic_illegal`", "characters"),
        Limit("queues of a topic", "store.registry:MAX_QUEUES", "422 `queue_illegal`"),
        Limit("retention", "RESERVED_HOURS", "the oldest segment is dropped, acked or not", "h"),
    ),
    "Consumers": (
        Limit("messages of a receive", "MAX_RECEIVE_MESSAGES", "422 `message_illegal`"),
        Limit("bodies of one answer", "MAX_RECEIVE_BYTES", "fewer messages; the first always fits", "bytes"),
        Limit("wait of a receive", "MAX_WAIT_SECONDS", "422 `message_illegal`", "s"),
        Limit("invisible time, at least", "MIN_INVISIBLE_SECONDS", "422 `message_illegal`", "s"),
        Limit("invisible time, at most", "MAX_INVISIBLE_SECONDS", "422 `message_illegal`", "s"),
        Limit("retries of a message", "MAX_RECONSUME_TIMES", "the message becomes a dead letter"),
        Limit("receipt handles of an ack", "delivery.receipts.given:MAX_HANDLES", "422 `message_illegal`"),
        Limit("messages sent with an ack", "delivery.receipts.forward:MAX_MESSAGES", "422 `message_illegal`"),
        Limit("messages of a pull by offset", "delivery.receive.pull:MAX_MESSAGES", "422 `message_illegal`"),
        Limit("`in_flight` of a group's `limits`", "delivery.limits.bounds:MAX_IN_FLIGHT", "422 `message_illegal`"),
        Limit("`values` of a group's `limits`", "delivery.limits.bounds:MAX_VALUES", "422 `message_illegal`"),
        Limit("filter", "delivery.filters.forms:MAX_CHARACTERS", "422 `filter_illegal`", "characters"),
    ),
    "Configuration": (
        Limit("scopes of a key", "access.keys:MAX_SCOPES", "422 `message_illegal`"),
        Limit("endpoints of a producer group", "transactions.endpoints:MAX_ENDPOINTS", "422 `message_illegal`"),
        Limit("subscriptions", "delivery.push.registry:MAX_SUBSCRIPTIONS", "422 `message_illegal`"),
        Limit("schedules", "scheduling.cron.registry:MAX_SCHEDULES", "422 `message_illegal`"),
        Limit("message of a schedule", "scheduling.cron.registry:MAX_BYTES", "422 `message_illegal`", "bytes"),
        Limit("outboxes", "transactions.outboxes.registry:MAX_OUTBOXES", "422 `message_illegal`"),
    ),
    "A web process": (
        Limit("wait before new work begins", "GROUP_COMMIT_MAX_WAIT_MILLISECONDS", "503 `system_busy`", "ms"),
        Limit("requests that wait", "GROUP_COMMIT_MAX_WAITING", "503 `system_busy`"),
        Limit("bodies that wait", "GROUP_COMMIT_MAX_WAITING_BYTES", "503 `system_busy`", "bytes"),
        Limit("request bodies, also unfinished", "REQUESTS_IN_FLIGHT_BYTES", "503 `system_busy`", "bytes"),
        Limit("messages in answers not yet sent", "ANSWERS_IN_FLIGHT_BYTES", "smaller pages, then 503", "bytes"),
        Limit("time in which a body arrives", "BODY_READ_SECONDS", "408 `request_timeout`", "s"),
        Limit("connections from one address", "CONNECTIONS_PER_ADDRESS", "the connection is closed"),
    ),
}  # fmt: skip


def main() -> None:
    """Writes the page."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    # No database is needed for the page.
    os.environ.setdefault("DATABASE_URL", "postgresql://127.0.0.1/none")
    import django

    django.setup()
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page for the present code."""
    return HEAD + "\n\n".join("\n".join(_section(title)) for title in LIMITS) + "\n"


def _section(title: str) -> Iterator[str]:
    yield f"## {title}"
    yield "| limit of | default | setting | beyond it |"
    yield "|---|---|---|---|"
    for limit in LIMITS[title]:
        setting = f"`{limit.setting}`" if limit.setting else ""
        yield f"| {limit.what} | {limit.shown} | {setting} | {limit.beyond} |"


if __name__ == "__main__":
    main()
