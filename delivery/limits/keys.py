"""Keys: a fair group takes turns between the keys of messages, and the limits of a group count messages by key."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from store.errors import MessageIllegal

SHARDING_KEY = "sharding_key"
PROPERTY = "property:"
# All messages have the same key, for limits of the whole group.
GROUP = "group"
# The key of a message without a key. It sorts before all other keys.
NO_KEY = ""
# The most characters of a key. Keys with the same first 128 characters count as one key. PostgreSQL's index entries
# have at most 2,704 bytes.
MAX_KEY = 128


def validate(fair_by: object) -> None:
    """Raises MessageIllegal unless `fair_by` names the sharding key or a property."""
    if not is_source(fair_by):
        raise MessageIllegal(f"fair_by is not valid: give {SHARDING_KEY}, {PROPERTY}NAME, or null.")


def source(fair_by: str | None, limits: Mapping[str, Any] | None) -> str | None:
    """The field or property with the key by which a group's messages wait. None: the group's messages do not wait by
    key.
    """
    return fair_by or (None if limits is None else limits["by"])


def is_source(by: object) -> bool:
    """Whether this text names the sharding key or a property."""
    name = by.removeprefix(PROPERTY) if isinstance(by, str) else ""
    return by == SHARDING_KEY or (name != by and bool(name))


def readable(key: str) -> str:
    """The value of a message's key. For a property this is the text in the stored JSON, in which some characters are
    escaped.
    """
    if "\\" not in key:
        return key
    try:
        return msgspec.json.decode(f'"{key}"', type=str)
    except msgspec.DecodeError:
        return key


def length(source: str) -> int:
    """The largest number of characters of a key; 0 for GROUP, where all messages have the empty key."""
    return 0 if source == GROUP else MAX_KEY


def pattern(source: str) -> str | None:
    """The regular expression by which PostgreSQL finds a property's value in the stored JSON; None for another source.

    The JSON escapes a quotation mark within a name or a value, so no other text matches the quoted name.
    """
    if source in (SHARDING_KEY, GROUP):
        return None
    name = msgspec.json.encode(source.removeprefix(PROPERTY)).decode()
    return f'[{{,]{re.escape(name)}:"((?:[^"\\\\]|\\\\.)*)"'
