"""The registry of outboxes: made, changed, listed and taken away by operators."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.db import IntegrityError, transaction

from outboxes.models import Outbox
from store.db import fields
from store.errors import MessageIllegal, Refusal

MAX_OUTBOXES = 200
MAX_TOPICS = 100
NAME = re.compile(r"[a-zA-Z0-9_-]{1,100}")
# An identifier of PostgreSQL that needs no quotes: it is set as the search path.
SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
# Any other would name files of this machine, or run what the URL says.
URL_OPTIONS = {"sslmode", "connect_timeout", "target_session_attrs", "channel_binding", "application_name"}
TOPIC_PATTERN = r"^[%|a-zA-Z0-9_*-]{1,127}$"

FIELDS = fields.of(
    Outbox,
    fields.Words(
        "topics",
        "Topics",
        help="Names of topics that may be sent to, where `*` stands for any characters",
        needed=True,
        pattern=TOPIC_PATTERN,
        rule="a topic's name, or a pattern with `*`",
        most=MAX_TOPICS,
        between=",",
    ),
    fields.Text("schema", "Schema", help="The schema of the outbox, a name without quotes", most=63),
    fields.Switch("paused", "Paused", help="Whether its rows are left where they are"),
)


class OutboxNotExist(Refusal):
    """No outbox has this name."""

    code = "not_found"


def page(after: str, count: int, matching: str = "") -> Sequence[Outbox]:
    """Outboxes by name: the first `count` behind `after` whose names contain `matching`, in any case."""
    return list(Outbox.objects.filter(name__gt=after, name__icontains=matching).order_by("name")[:count])


def named(name: str) -> Outbox | None:
    """The outbox of this name, or None."""
    return Outbox.objects.filter(name=name).first()


def find(name: str) -> Outbox:
    """The outbox of this name.

    Raises OutboxNotExist, or MessageIllegal for what is no name.
    """
    validate_name(name)
    found = named(name)
    if found is None:
        raise OutboxNotExist(f"There is no outbox {name}: PUT /v1/outboxes/{name} makes it.")
    return found


def validate_name(name: str) -> None:
    """Raises MessageIllegal for what is no name."""
    if not NAME.fullmatch(name):
        raise MessageIllegal(f"{name[:60]!r}: the name of an outbox has 1 to 100 of the characters a-z A-Z 0-9 _ -.")


def server_of(url: str) -> str:
    """Host, port and database of a URL, without user and password.

    Raises MessageIllegal for what is no URL of a PostgreSQL, or has an option that is not in URL_OPTIONS.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _no_url() from None
    if parts.scheme not in ("postgresql", "postgres") or not parts.hostname or len(parts.path) < 2 or parts.fragment:
        raise _no_url()
    unknown = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)} - URL_OPTIONS)
    if unknown:
        raise MessageIllegal(
            f"url has the option {unknown[0][:60]}: an outbox's may have {', '.join(sorted(URL_OPTIONS))}."
        )
    return f"{parts.hostname}:{port or 5432}{parts.path}"


def _no_url() -> MessageIllegal:
    return MessageIllegal("url is no URL of a PostgreSQL: give postgresql://user:password@host:port/database.")


def put(name: str, changes: Mapping[str, Any]) -> tuple[Outbox, bool]:
    """Makes the outbox, or changes what is given of it; the flag is whether it was made.

    Raises MessageIllegal, as where a new one has no URL or no topics. A change holds in every process within seconds.
    """
    validate_name(name)
    changes = dict(changes)
    if "source_url" in changes:
        changes["server"] = server_of(changes["source_url"])
    if not SCHEMA.fullmatch(changes.get("schema", "public")):
        raise MessageIllegal("schema is no name without quotes: give small letters, digits and _, 63 at most.")
    try:
        return _put(name, changes)
    except IntegrityError:
        # Another request has made it since it was looked up.
        return _put(name, changes)


def _put(name: str, changes: Mapping[str, Any]) -> tuple[Outbox, bool]:
    with transaction.atomic():
        row = Outbox.objects.select_for_update().filter(name=name).first()
        if row is not None:
            for column, value in {**changes, "failure": None, "failed_at": None}.items():
                setattr(row, column, value)
            row.save(update_fields=[*changes, "failure", "failed_at"])
            return row, False
        if not changes.get("source_url") or not changes.get("topics"):
            raise MessageIllegal("A new outbox needs url and topics.")
        if Outbox.objects.count() >= MAX_OUTBOXES:
            raise MessageIllegal(f"There are {MAX_OUTBOXES} outboxes, which is the limit: delete one first.")
        return Outbox.objects.create(name=name, **changes), True


def remove(row: Outbox) -> None:
    """Takes an outbox out of the registry. Its table stays as it is, with its rows."""
    row.delete()
