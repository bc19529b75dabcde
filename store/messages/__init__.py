"""The fields of a message, and the rules for its fields, properties and JSON."""

from store.messages.fields import (
    MAX_PROPERTIES_BYTES,
    MAX_SHARDING_KEY,
    TEXT,
    Message,
    MessageRow,
    Record,
    StoredMessage,
    columns,
    is_large,
    packed,
    stored,
)
from store.messages.rules import checked, is_soon_read, require_readable
from store.messages.times import Time

__all__ = [
    "MAX_PROPERTIES_BYTES",
    "MAX_SHARDING_KEY",
    "TEXT",
    "Message",
    "MessageRow",
    "Record",
    "StoredMessage",
    "Time",
    "checked",
    "columns",
    "is_large",
    "is_soon_read",
    "packed",
    "require_readable",
    "stored",
]
