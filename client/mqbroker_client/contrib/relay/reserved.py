"""Header names that have a meaning for a target, its clients, other readers or this client: a table per target.

A property must never act as a command to the target: a property with a reserved name becomes a header with PREFIX in
front of the name. A name that begins with PREFIX gets PREFIX once more, so two properties never become one header.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "property-"

#: Headers that we make of the fields of a message.
FIELDS = ("message_id", "topic", "tags", "keys", "sharding_key", "born_at", "traceparent")
#: FastStream's, on each of its brokers; by `content-type` a reader of CloudEvents finds structured events, too.
_FASTSTREAM = ("content-type", "correlation_id", "reply_to")
_EVERYWHERE = (*FIELDS, *_FASTSTREAM)
_BEGINNINGS_EVERYWHERE = (PREFIX, "ce-", "cloudEvents:")
# What readers may take for one another, as `_` and `-` in CGI.
_SEPARATOR = re.compile(r"[\s_.:\u2010-\u2015\u2212-]")
# Written, and not seen.
_UNSEEN = ("Cc", "Cf", "Mn")


def folded(name: str) -> str:
    """A name as the most tolerant reader sees it: without case, width, accents, outer blanks, kinds of separators."""
    wide = unicodedata.normalize("NFKD", name).casefold()
    seen = "".join(sign for sign in wide if unicodedata.category(sign) not in _UNSEEN)
    return _SEPARATOR.sub("-", seen.strip())


@dataclass(frozen=True)
class Reserved:
    """The names, and the beginnings of names, that are reserved at one target."""

    names: frozenset[str]
    beginnings: tuple[str, ...]

    def header(self, name: str) -> str:
        """The header that a property of this name becomes."""
        plain = folded(name)
        return f"{PREFIX}{name}" if plain in self.names or plain.startswith(self.beginnings) else name


def _table(names: tuple[str, ...], beginnings: tuple[str, ...]) -> Reserved:
    return Reserved(
        frozenset(map(folded, (*_EVERYWHERE, *names))), tuple(map(folded, (*_BEGINNINGS_EVERYWHERE, *beginnings)))
    )


_AMQP = (
    # RabbitMQ routes a message to further queues by these two.
    *("CC", "BCC"),
    # kombu unpacks a body by it.
    "compression",
    # Celery's message protocol 2.
    *("task", "id", "lang", "root_id", "parent_id", "group", "group_index", "meth", "shadow", "eta", "expires"),
    *("retries", "timelimit", "argsrepr", "kwargsrepr", "origin", "ignore_result", "replaced_task_nesting"),
    *("stamped_headers", "stamps"),
)
_NATS = (
    # Clients take these two for an answer of the server.
    *("Status", "Description"),
    # By these the server chooses what it traces, and packs its answers.
    *("Accept-Encoding", "B3", "Uber-Trace-Id"),
)

#: By the kind of a target. RabbitMQ and its plugins have all that begins with `x-`; NATS has streams (`Nats-`), buckets
#: of keys (`KV-`) and MQTT (`Nmqtt-`). Readers in Java choose the class that they make of a body by `__TypeId__`, and
#: keep addresses of replies and reasons of dead letters behind `kafka_`, `amqp_` and `spring_`.
TABLES: Mapping[str, Reserved] = {
    "amqp": _table(_AMQP, ("x-", "__", "amqp_", "spring_")),
    "nats": _table(_NATS, ("Nats-", "KV-", "Nmqtt-", "X-B3-")),
    "kafka": _table((), ("__", "kafka_", "spring_")),
}
