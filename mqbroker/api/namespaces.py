"""The namespace of a request: names in its path and query get the namespace as a prefix before anything reads them.

Names in the body get it when the body is decoded (`DataRequest`, `Resource.body`). In the answer all names are without
the prefix.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from access.callers import Caller
from mqbroker.rights import NAMES_OF_PATHS
from mqbroker.wire.exchange import Exchange
from store.errors import MessageIllegal, NoPermission
from store.naming.namespaces import NAME_RULE, Namespace, is_namespace

# The header with a client's namespace, for a key that is bound to no namespace.
HEADER = b"x-namespace"
# The parts of paths that are followed by a name, and the fields of queries that are names.
BEFORE_NAMES = frozenset((b"topics", b"producer-groups", b"consumer-groups", b"subscriptions", b"dead-letters"))
NAMED_IN_QUERY = ("topic", "producer_group")
PATHS = b"/v1/"
# The API's own documents, which contain no names of topics.
SCHEMA = b"/v1/schema"


def is_concerned(exchange: Exchange) -> bool:
    """Whether this request or its answer may contain names of topics and groups."""
    return exchange.target.startswith(PATHS) and exchange.target != SCHEMA


def enter(exchange: Exchange, caller: Caller) -> Namespace:
    """Enters the caller's namespace, if any: adds it to names in path and query, and removes it from names in the
    answer.

    Raises MessageIllegal for an invalid namespace in the header, NoPermission if the header's namespace is not the
    key's.
    """
    asked = exchange.headers.get(HEADER)
    namespace = _of(caller, None if asked is None else asked.decode("latin-1"))
    exchange.target = _path(exchange.target, namespace)
    if exchange.query_string:
        exchange.query_string = _query(exchange.query_string, namespace)
    exchange.namespace = namespace
    return namespace


def wrapped(namespace: Namespace, named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters of a path, with whole names."""
    return {name: namespace.wrap(value) if name in NAMES_OF_PATHS else value for name, value in named.items()}


def _of(caller: Caller, asked: str | None) -> Namespace:
    if caller.namespace is not None:
        if asked not in (None, caller.namespace):
            raise NoPermission(
                f"The key {caller.name!r} is bound to the namespace {caller.namespace}: leave the header X-Namespace "
                "out, or name this namespace."
            )
        return Namespace(caller.namespace, is_bound=True)
    if asked is None or not is_namespace(asked):
        raise MessageIllegal(f"The header X-Namespace is {str(asked)[:60]!r}: {NAME_RULE}.")
    return Namespace(asked, is_bound=False)


def _path(target: bytes, namespace: Namespace) -> bytes:
    parts = target.split(b"/")
    if len(parts) > 3 and parts[2] in BEFORE_NAMES:
        name = unquote_to_bytes(parts[3]).decode("utf-8", "replace")
        parts[3] = quote(namespace.wrap(name), safe="").encode()
    return b"/".join(parts)


def _query(query: bytes, namespace: Namespace) -> bytes:
    given = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    wrapped = [(name, namespace.wrap(value) if name in NAMED_IN_QUERY else value) for name, value in given]
    return urlencode(wrapped).encode()
