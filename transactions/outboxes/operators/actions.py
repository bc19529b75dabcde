"""The actions of the console on outboxes."""

from console.actions.configuration import Thing, put
from transactions.outboxes import registry

OUTBOX = Thing(
    "outbox", registry.find, put(registry), "outbox.put", ("server", "port", "database", "schema", "topics", "paused")
)

ACTIONS = (
    OUTBOX.changed("outbox.change", "Change the outbox", "Change", fields=registry.FIELDS),
    OUTBOX.changed("outbox.pause", "Pause outboxes", "Pause", {"paused": True}),
    OUTBOX.changed("outbox.continue", "Continue outboxes", "Continue", {"paused": False}),
    OUTBOX.deleted("outbox.delete", "Delete outboxes", "Delete", registry.remove),
)
