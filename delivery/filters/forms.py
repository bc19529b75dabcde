"""The forms in which a consumer gives its filter."""

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

import msgspec

from delivery.filters import grammar, predicates
from delivery.filters.predicates import Condition
from store.db.connections import Row
from store.errors import FilterIllegal

Filter = Callable[[Row], bool]

# The name of a message's tags in an SQL filter, RocketMQ's too; a property of this name is refused at the send.
TAGS = "TAGS"
TAG = re.compile(r"[^|\x00-\x1f\x7f-\x9f]+")
MAX_CHARACTERS = 4096
# A consumer gives its filter with every receive; reading one takes some 0.1 ms and 30 µs per condition.
MAX_REMEMBERED = 1024

EVERY_FORM = 'give a tag expression such as "A || B", "*" for every message, or {"sql": "price > 10"}'
_properties = msgspec.json.Decoder(dict[str, str])


def parse(given: Any) -> Filter | None:
    """The filter that a consumer gave, or None when it wants every message.

    Three forms: nothing or `*`; a tag expression `A || B`, of which a tag is compared itself, not only by its hash; and
    `{"sql": …}`, a condition on the message's properties as `grammar` and `predicates` describe it. Raises
    FilterIllegal, with the `position` of what is wrong where there is one, counted from 1.
    """
    if given is None:
        return None
    if isinstance(given, str):
        _judge_length(given)
        return None if given.strip() == "*" else _by_tags(_tags(given))
    if isinstance(given, dict) and given.keys() == {"sql"} and isinstance(given["sql"], str):
        _judge_length(given["sql"])
        return _by_sql(given["sql"])
    raise FilterIllegal(f"filter {str(given)[:60]} is none: {EVERY_FORM}.")


def _judge_length(text: str) -> None:
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
    def wants(row: Row) -> bool:
        return condition(_properties.decode(row.properties) if row.properties is not None else {})

    return wants


def _by_tags_too(condition: Condition, *, reads_properties: bool) -> Filter:
    def wants(row: Row) -> bool:
        readable = reads_properties and row.properties is not None
        fields = _properties.decode(row.properties) if readable else {}
        if row.tags is not None:
            fields[TAGS] = row.tags
        return condition(fields)

    return wants
