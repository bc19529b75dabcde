"""The actions of the console on outboxes.

The URL has a password, so the actions that set it run in the request that has the form: no row of an action keeps them.
"""

from dataclasses import replace

from access import audit
from access.audit import Signature, picture
from console.actions.configuration import Thing, put
from console.actions.shapes import Parameters
from console.actions.shown_once import Once, Shown
from store.db import fields
from transactions.outboxes import registry

OUTBOX = Thing(
    "outbox", registry.find, put(registry), "outbox.put", ("server", "port", "database", "schema", "topics", "paused")
)
SCHEMA = fields.named(registry.FIELDS, "schema")


def make(target: str, values: Parameters, signature: Signature) -> Shown:
    """Creates an outbox of this name. Raises MessageIllegal when the name is in use, and the registry's refusals."""
    registry.validate_name(target)
    OUTBOX.require_absent(target, registry.named(target))
    return register(target, values, signature)


def register(target: str, values: Parameters, signature: Signature) -> Shown:
    """Creates an outbox, or changes the given fields, after a trial of its source. Raises the registry's refusals."""
    failure = registry.try_out(target, values)
    with audit.change(signature, OUTBOX.action, target) as change:
        change.before = picture(registry.named(target))
        row, _ = registry.put(target, values, failure)
        change.after = picture(row)
    return Shown((("Outbox", row.name), ("Server", row.place), ("State", failure or "the broker drains it")))


def place(target: str) -> dict[str, object]:
    """The columns that the form of a move shows: without the URL, which has a password."""
    return {"schema": registry.find(target).schema}


ACTIONS = (
    Once(
        "outbox.make",
        "Make an outbox",
        "Make an outbox",
        make,
        noun=OUTBOX.noun,
        right=OUTBOX.action,
        fields=(registry.URL, *registry.FIELDS),
        makes=True,
    ),
    Once(
        "outbox.move",
        "Change the URL and the schema of the outbox",
        "Change the URL",
        register,
        noun=OUTBOX.noun,
        right=OUTBOX.action,
        fields=(replace(registry.URL, needed=False, unset="the URL stays as it is"), *SCHEMA),
        grave=True,
        standing=place,
    ),
    OUTBOX.changed(
        "outbox.change", "Change the outbox", "Change", fields=fields.named(registry.FIELDS, "topics", "paused")
    ),
    OUTBOX.changed("outbox.pause", "Pause outboxes", "Pause", {"paused": True}),
    OUTBOX.changed("outbox.continue", "Continue outboxes", "Continue", {"paused": False}),
    OUTBOX.deleted("outbox.delete", "Delete outboxes", "Delete", registry.remove),
)
