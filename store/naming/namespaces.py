"""Namespaces: the prefix of the names of a team's topics and groups, in the form of RocketMQ's NamespaceUtil.

`orders` in the namespace `team` is `team%orders`; the retries and dead letters of its group `coupons` are
`%RETRY%team%coupons` and `%DLQ%team%coupons`. The broker uses whole names everywhere; a caller in a namespace writes
and reads bare names. Names are wrapped (made whole) in the decoded request, and made bare again in the document of the
answer.
"""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from django.db.models import Q

from store import models
from store.cells import cells
from store.db import connections, databases, sync
from store.db.statements import Statement
from store.db.ttl_cache import CONFIGURATION_SECONDS, TtlCache
from store.errors import NoPermission, RateLimited
from store.naming import documents, names
from store.process import runtime
from store.rows import NamespaceRow

SEPARATOR = "%"
MAX_CHARACTERS = 40
NAME = f"^[A-Za-z0-9][A-Za-z0-9_-]{{0,{MAX_CHARACTERS - 1}}}$"
NAME_RULE = f"a namespace has 1 to {MAX_CHARACTERS} letters, digits, _ and -, and begins with a letter or a digit"
PREFIXES = (names.RETRY_PREFIX, names.DEAD_LETTER_PREFIX)

# In a document for a caller in a namespace, this text replaces a name outside of the namespace.
ELSEWHERE = "(outside of the namespace)"
Given = TypeVar("Given")


def wrapped(namespace: str, name: str) -> str:
    """The whole name. A name that is whole already, and an empty one, stays as it is."""
    prefix = _prefix_of(name)
    own, start = name[len(prefix) :], namespace + SEPARATOR
    if not own or (own.startswith(start) and own != start):
        return name
    return f"{prefix}{start}{own}"


def bare(namespace: str, name: str) -> str | None:
    """The bare name, as callers of the namespace write it; None for a name outside of the namespace."""
    prefix = _prefix_of(name)
    own, start = name[len(prefix) :], namespace + SEPARATOR
    return prefix + own[len(start) :] if own.startswith(start) and own != start else None


def part_of(name: str) -> str:
    """The part of a name before its first %, where a namespace stands; empty if there is no namespace."""
    part, separator, _ = name[len(_prefix_of(name)) :].partition(SEPARATOR)
    return part if separator else ""


def is_namespace(text: str) -> bool:
    """Whether a namespace may have this name. NAME_RULE is the rule in words."""
    return re.fullmatch(NAME, text) is not None


def starts(namespace: str | None) -> list[str]:
    """The prefixes with which names in the namespace begin.

    For None: the empty text, with which all names begin.
    """
    return [""] if namespace is None else [f"{prefix}{namespace}{SEPARATOR}" for prefix in ("", *PREFIXES)]


def within(namespace: str | None, column: str = "name") -> Q:
    """A condition for Django's querysets: only rows whose names are in the namespace; all rows for None."""
    if namespace is None:
        return Q()
    return Q(*((f"{column}__startswith", start) for start in starts(namespace)), _connector=Q.OR)


def _prefix_of(name: str) -> str:
    return next((prefix for prefix in PREFIXES if name.startswith(prefix)), "")


@dataclass(frozen=True, slots=True)
class Namespace:
    """The namespace of a caller. `is_bound`: its API key is bound to the namespace; if False, the request names it."""

    name: str
    is_bound: bool

    def wrap(self, name: str) -> str:
        """The whole name for a name in a request. Raises NoPermission for a name of another namespace."""
        if (part := part_of(name)) not in ("", self.name):
            raise NoPermission(
                f"The name {name[:200]} lies in the namespace {part[:MAX_CHARACTERS]}, but this request is "
                f"for the namespace {self.name}: write names without a namespace, or whole names that begin "
                f"with {self.name}%."
            )
        return wrapped(self.name, name)

    def show(self, name: str) -> str:
        """The name to show in an answer."""
        found = bare(self.name, name)
        if found is not None:
            return found
        return ELSEWHERE if self.is_bound and name not in names.SYSTEM else name

    def wrap_names(self, given: Given) -> Given:
        """Adds the namespace to names in the decoded body of a request: in fields of structs, or of JSON objects."""
        documents.wrap_names(given, self.wrap)
        return given

    def show_document(self, content: bytes) -> bytes:
        """The JSON of an answer with bare names."""
        return documents.rewritten(content, self.show, self.show_text)

    def showing_document(self, content: bytes) -> Generator[None, None, bytes]:
        """Does what `show_document` does for a large object, with a pause after each part."""
        return documents.rewriting(content, self.show, self.show_text)

    def show_text(self, text: str) -> str:
        """The sentence of a refusal with bare names; it may contain names of the request."""
        return text.replace(f"{self.name}{SEPARATOR}25", "").replace(f"{self.name}{SEPARATOR}", "")


FIND_NAMESPACE = Statement(__file__, "find_namespace", NamespaceRow)
COUNT_TOPICS = Statement(__file__, "count_topics_within", one=int)
ADD_REFUSALS = Statement(__file__, "add_refusals_of_namespaces")


@dataclass
class Registered:
    """The registered namespaces that this process has cached."""

    by_name: TtlCache[str, NamespaceRow] = field(default_factory=lambda: TtlCache(CONFIGURATION_SECONDS))

    def forget_all(self) -> None:
        """Drops the cached namespaces, because another process may have changed them."""
        self.by_name.forget_all()


async def of_name(name: str) -> NamespaceRow | None:
    """The registered namespace in which a whole name lies; None for a name without a namespace, as most names are."""
    part = part_of(name)
    if not part:
        return None
    by_name = runtime.control(Registered).by_name

    async def look_up() -> NamespaceRow | None:
        rows = await connections.read_control(FIND_NAMESPACE, {"name": part})
        return rows[0] if rows else None

    return await by_name.get(part, lambda: cells.or_last(by_name, part, look_up))


async def require_room(name: str) -> None:
    """Raises RateLimited if the namespace of a new topic has reached its limit of topics.

    Topics that are created at the same moment may together exceed the limit.
    """
    row = await of_name(name)
    if row is not None and row.max_topics is not None:
        counted = await connections.read_control(COUNT_TOPICS, {"start": row.name + SEPARATOR})
        _require(row.name, row.max_topics, counted)


def hold_room(name: str) -> None:
    """Checks the limit like `require_room`, but exactly, in the transaction of the control that creates the topic.

    It locks the row of the namespace, so the second of two such transactions counts the topic of the first.
    """
    named = models.Namespace.objects.using(databases.here()).select_for_update().filter(name=part_of(name))
    row = named.first() if part_of(name) else None
    if row is not None and row.max_topics is not None:
        _require(row.name, row.max_topics, sync.read(COUNT_TOPICS, {"start": row.name + SEPARATOR}))


def _require(name: str, max_topics: int, counted: Sequence[int]) -> None:
    [topics] = counted
    if topics >= max_topics:
        raise RateLimited(
            f"The namespace {name} has {topics} topic{'' if topics == 1 else 's'}, its limit: delete a topic, or raise "
            f"max_topics at /v1/namespaces/{name}."
        )


async def shown_to(group: str, payload: bytes) -> bytes:
    """The body of a call that the broker makes for a group, with the names bare in the group's namespace."""
    row = await of_name(group)
    return payload if row is None else Namespace(row.name, is_bound=True).show_document(payload)
