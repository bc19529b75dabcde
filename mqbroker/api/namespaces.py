"""The namespace of a request: the names of its path and its query are wrapped before anything reads them.

Those of its body are wrapped where that is decoded (`DataRequest`, `Resource.body`), and all are bare in its answer.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from access.callers import Caller
from mqbroker.rights import NAMES_OF_PATHS
from mqbroker.wire.exchange import Exchange
from store.errors import MessageIllegal, NoPermission
from store.naming.namespaces import NAME_RULE, Namespace, is_namespace

# A client's own namespace, where its key has none.
HEADER = b"x-namespace"
# The parts of paths behind which a name stands, and the fields of queries that are one.
BEFORE_NAMES = frozenset((b"topics", b"producer-groups", b"consumer-groups", b"subscriptions", b"dead-letters"))
NAMED_IN_QUERY = ("topic", "producer_group")
PATHS = b"/v1/"
# The API's own documents, which name no topic.
SCHEMA = b"/v1/schema"


def is_concerned(exchange: Exchange) -> bool:
    """Whether names of topics and groups stand in such a request or its answer."""
    return exchange.target.startswith(PATHS) and exchange.target != SCHEMA


def enter(exchange: Exchange, caller: Caller) -> Namespace:
    """The namespace of a caller that has one; wraps the names of the path and the query, and has the answer unwrapped.

    Raises MessageIllegal for a header that is no namespace, NoPermission for another one than the key's.
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
                "out, or name that one."
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
