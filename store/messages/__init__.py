"""What a message is, and the rules that its fields, its properties and its JSON obey."""

from store.messages.fields import (
    MAX_PROPERTIES_BYTES,
    MAX_SHARDING_KEY,
    Message,
    MessageRow,
    Record,
    StoredMessage,
    Time,
    checked,
    columns,
    is_large,
    packed,
    stored,
)

__all__ = [
    "MAX_PROPERTIES_BYTES",
    "MAX_SHARDING_KEY",
    "Message",
    "MessageRow",
    "Record",
    "StoredMessage",
    "Time",
    "checked",
    "columns",
    "is_large",
    "packed",
    "stored",
]
