"""The keys of a fair group: what parts its messages, the sharding key or a property."""

import re

import msgspec

from store.errors import MessageIllegal

SHARDING_KEY = "sharding_key"
PROPERTY = "property:"
# Sorts before all keys.
NO_KEY = ""
# Characters of a key. Keys with the same first 128 characters take turns as one key. PostgreSQL's index entries have at
# most 2,704 bytes.
MAX_KEY = 128


def validate(fair_by: object) -> None:
    """Raises MessageIllegal unless `fair_by` names the sharding key or a property."""
    name = fair_by.removeprefix(PROPERTY) if isinstance(fair_by, str) else ""
    if fair_by != SHARDING_KEY and (name == fair_by or not name):
        raise MessageIllegal(f"fair_by is not valid: give {SHARDING_KEY}, {PROPERTY}NAME, or null.")


def pattern(fair_by: str | None) -> str | None:
    """The regular expression by which PostgreSQL finds a property's value in the stored JSON; None: the sharding key.

    The JSON escapes a quotation mark within a name or a value, so no other text matches the quoted name.
    """
    if fair_by is None or fair_by == SHARDING_KEY:
        return None
    name = msgspec.json.encode(fair_by.removeprefix(PROPERTY)).decode()
    return f'[{{,]{re.escape(name)}:"((?:[^"\\\\]|\\\\.)*)"'
