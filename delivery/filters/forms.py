"""The forms of a filter: a tag expression, or an SQL condition on properties."""

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Protocol

import msgspec

from delivery.filters import grammar, predicates
from delivery.filters.predicates import Condition
from store.errors import FilterIllegal
from store.process import pacing


class Filtered(Protocol):
    """The columns of a message that a filter reads."""

    @property
    def tags(self) -> str | None: ...
    @property
    def properties(self) -> bytes | None: ...


Filter = Callable[[Filtered], bool]

# The name by which an SQL filter reads a message's tags, as in RocketMQ; a send refuses a property with this name.
TAGS = "TAGS"
TAG = re.compile(r"[^|\x00-\x1f\x7f-\x9f]+")
MAX_CHARACTERS = 4096
# A process keeps this number of parsed filters, because each receive sends its filter, and parsing takes at least 0.1
# ms.
MAX_REMEMBERED = 1024
# A filter of up to this many characters takes at most 2 ms to parse. Longer filters are parsed one at a time.
SHORT_CHARACTERS = 256

EVERY_FORM = 'give a tag expression such as "A || B", "*" for every message, or {"sql": "price > 10"}'
# The forms as a JSON schema. A field that may be null adds null to this schema.
SCHEMA = {
    "oneOf": [
        {"type": "string", "description": "A tag expression such as `A || B`, or `*`."},
        {
            "type": "object",
            "properties": {"sql": {"type": "string", "description": "SQL-92 over the message's properties."}},
            "required": ["sql"],
            "additionalProperties": False,
        },
    ]
}
_properties = msgspec.json.Decoder(dict[str, str])


def parse(given: object) -> Filter | None:
    """The filter of a request, or None when every message is wanted.

    There are three forms: nothing or `*`; a tag expression `A || B`, which compares the tags and not their hashes; and
    `{"sql": …}`, a condition on the message's properties, described in `grammar` and `predicates`. Raises FilterIllegal
    with the `position` of the first invalid word, counted from 1; without a position if no single word is wrong.
    """
    if given is None:
        return None
    if isinstance(given, str):
        _require_length(given)
        return None if given.strip() == "*" else _by_tags(_tags(given))
    if isinstance(given, dict) and given.keys() == {"sql"} and isinstance(given["sql"], str):
        _require_length(given["sql"])
        return _by_sql(given["sql"])
    raise FilterIllegal(f"filter {str(given)[:60]} is not a filter: {EVERY_FORM}.")


async def parse_in_turn(given: object) -> Filter | None:
    """The result of `parse`. A process parses one long SQL filter at a time: 1,000 words take about 20 ms."""
    if not isinstance(given, dict) or len(str(given.get("sql"))) <= SHORT_CHARACTERS:
        return parse(given)
    async with pacing.step():
        return parse(given)


def _require_length(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise FilterIllegal(f"The filter has {len(text)} characters, the limit is {MAX_CHARACTERS}.")


def _tags(given: str) -> frozenset[str]:
    tags = set()
    position = 1
    for part in given.split("||"):
        tag = part.strip()
        if not TAG.fullmatch(tag):
            raise FilterIllegal(
                f"filter {given[:60]!r} has no tag at position {position}: {EVERY_FORM}.", position=position
            )
        tags.add(tag)
        position += len(part) + len("||")
    return frozenset(tags)


def _by_tags(tags: Collection[str]) -> Filter:
    return lambda row: row.tags in tags


@lru_cache(maxsize=MAX_REMEMBERED)
def _by_sql(sql: str) -> Filter:
    tree = grammar.read(sql)
    condition = predicates.of(tree)
    names = predicates.names(tree)
    if TAGS not in names:
        return _by_properties(condition)
    return _by_tags_too(condition, reads_properties=len(names) > 1)


def _by_properties(condition: Condition) -> Filter:
    def wants(row: Filtered) -> bool:
        return condition(_properties.decode(row.properties) if row.properties is not None else {})

    return wants


def _by_tags_too(condition: Condition, *, reads_properties: bool) -> Filter:
    def wants(row: Filtered) -> bool:
        fields = _properties.decode(row.properties) if reads_properties and row.properties is not None else {}
        if row.tags is not None:
            fields[TAGS] = row.tags
        return condition(fields)

    return wants
