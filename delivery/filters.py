"""Filters: which messages of a topic a consumer wants."""

import re
from collections.abc import Callable
from typing import Any

from store.database import Row
from store.errors import FilterIllegal

Filter = Callable[[Row], bool]
TAG = re.compile(r"[^|\x00-\x1f]+")


def parse(given: Any) -> Filter | None:
    """The filter that a consumer gave: a tag expression `A || B`, `*` or nothing for every message.

    A tag is compared itself, not only by its hash. Raises FilterIllegal.
    """
    if given is None or given == "*":
        return None
    if not isinstance(given, str):
        raise FilterIllegal(f'filter {given!r} is no tag expression: give "A || B" or "*".')
    tags = frozenset(part.strip() for part in given.split("||"))
    for tag in tags:
        if not TAG.fullmatch(tag):
            raise FilterIllegal(
                f'filter {given!r} is no tag expression: give tags between ||, such as "A || B", or "*".'
            )
    return lambda row: row.tags in tags
