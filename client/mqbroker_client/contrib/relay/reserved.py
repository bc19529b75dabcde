"""Header names with a meaning for a target, its clients, other readers or this client: a table per target.

A property must never act as a command to the target: a property with a reserved name becomes a header with PREFIX in
front of the name. A name that begins with PREFIX gets PREFIX once more, so two properties never become one header.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "property-"

#: Headers that the relay makes from the fields of a message.
FIELDS = ("message_id", "topic", "tags", "keys", "sharding_key", "born_at", "traceparent")
#: Headers of FastStream, on all its brokers. Readers of CloudEvents also recognise structured events by `content-type`.
_FASTSTREAM = ("content-type", "correlation_id", "reply_to")
_EVERYWHERE = (*FIELDS, *_FASTSTREAM)
_BEGINNINGS_EVERYWHERE = (PREFIX, "ce-", "cloudEvents:")
# Characters that readers may treat as equal, such as `_` and `-` in CGI.
_SEPARATOR = re.compile(r"[\s_.:\u2010-\u2015\u2212-]")
# Unicode categories of invisible characters.
_UNSEEN = ("Cc", "Cf", "Mn")


def folded(name: str) -> str:
    """A name as the most tolerant reader compares it: ignoring case, width, accents, outer blanks and the kind of
    separator.
    """
    wide = unicodedata.normalize("NFKD", name).casefold()
    seen = "".join(sign for sign in wide if unicodedata.category(sign) not in _UNSEEN)
    return _SEPARATOR.sub("-", seen.strip())


@dataclass(frozen=True)
class Reserved:
    """The reserved names and prefixes of one target."""

    names: frozenset[str]
    beginnings: tuple[str, ...]

    def header(self, name: str) -> str:
        """The name of the header for a property of this name."""
        plain = folded(name)
        return f"{PREFIX}{name}" if plain in self.names or plain.startswith(self.beginnings) else name


def _table(names: tuple[str, ...], beginnings: tuple[str, ...]) -> Reserved:
    return Reserved(
        frozenset(map(folded, (*_EVERYWHERE, *names))), tuple(map(folded, (*_BEGINNINGS_EVERYWHERE, *beginnings)))
    )


_AMQP = (
    # RabbitMQ routes a message to the queues in these two headers.
    *("CC", "BCC"),
    # kombu decompresses a body by this header.
    "compression",
    # The headers of Celery's message protocol 2.
    *("task", "id", "lang", "root_id", "parent_id", "group", "group_index", "meth", "shadow", "eta", "expires"),
    *("retries", "timelimit", "argsrepr", "kwargsrepr", "origin", "ignore_result", "replaced_task_nesting"),
    *("stamped_headers", "stamps"),
)
_NATS = (
    # Clients take a message with these headers for an answer of the server.
    *("Status", "Description"),
    # The server traces messages, and compresses its answers, by these headers.
    *("Accept-Encoding", "B3", "Uber-Trace-Id"),
)

#: Reserved names by kind of target. RabbitMQ and its plugins use all names that begin with `x-`; NATS uses `Nats-` for
#: streams, `KV-` for key-value buckets and `Nmqtt-` for MQTT. Readers in Java choose the class of a body by
#: `__TypeId__`, and keep reply addresses and reasons of dead letters under `kafka_`, `amqp_` and `spring_`.
TABLES: Mapping[str, Reserved] = {
    "amqp": _table(_AMQP, ("x-", "__", "amqp_", "spring_")),
    "nats": _table(_NATS, ("Nats-", "KV-", "Nmqtt-", "X-B3-")),
    "kafka": _table((), ("__", "kafka_", "spring_")),
}
