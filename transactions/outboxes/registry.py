"""The registry of outboxes: operators create, change, list and remove them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from store.db import fields, sync
from store.errors import MessageIllegal, Refusal
from transactions.outboxes import fitness, places
from transactions.outboxes.models import Outbox
from transactions.outboxes.rows import Listed

MAX_OUTBOXES = 200
MAX_TOPICS = 100
NAME = re.compile(r"[a-zA-Z0-9_-]{1,100}")
# An identifier of PostgreSQL that needs no quotes, because it is set as the search path.
SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
TOPIC_PATTERN = r"^[%|a-zA-Z0-9_*-]{1,127}$"

URL = fields.Text(
    "url",
    "URL",
    source="source_url",
    help="Its database: `postgresql://user:password@host:port/database`. Answers show its fields without the "
    "password. In user, password and database `@ : / %` are written as `%40 %3A %2F %25`",
    needed=True,
    most=2000,
    is_secret=True,
)
FIELDS = fields.of(
    Outbox,
    fields.Words(
        "topics",
        "Topics",
        help="Names of topics to which its rows may go, where `*` stands for any characters",
        needed=True,
        pattern=TOPIC_PATTERN,
        rule="a topic's name, or a pattern with `*`",
        most=MAX_TOPICS,
        between=",",
    ),
    fields.Text("schema", "Schema", help="The schema of the outbox, a name without quotes", most=63),
    fields.Switch("paused", "Paused", help="Whether its rows stay in its table"),
)


class OutboxNotExist(Refusal):
    """There is no outbox with this name."""

    code = "not_found"


def page(after: str, count: int, matching: str = "") -> Sequence[Outbox]:
    """Outboxes by name: the first `count` after `after` whose names contain `matching`, upper or lower case."""
    return list(Outbox.objects.filter(name__gt=after, name__icontains=matching).order_by("name")[:count])


def named(name: str) -> Outbox | None:
    """The outbox of this name, or None."""
    return Outbox.objects.filter(name=name).first()


def find(name: str) -> Outbox:
    """The outbox of this name. Raises OutboxNotExist, or MessageIllegal for an invalid name."""
    validate_name(name)
    found = named(name)
    if found is None:
        raise OutboxNotExist(f"There is no outbox {name}: PUT /v1/outboxes/{name} makes it.")
    return found


def validate_name(name: str) -> None:
    """Raises MessageIllegal for an invalid name."""
    if not NAME.fullmatch(name):
        raise MessageIllegal(
            f"{name[:60]!r} is not a valid outbox name: give 1 to 100 of the characters a-z A-Z 0-9 _ -."
        )


def try_out(name: str, changes: Mapping[str, Any]) -> str | None:
    """Checks the new source of a change. Returns why it cannot be drained now, or None if it can.

    May wait some seconds for the server, so it is called before the transaction of the change. Raises MessageIllegal
    for a change that breaks a rule, and for a source that cannot be drained until it is corrected.
    """
    validate(name, changes)
    if not {"source_url", "schema"} & changes.keys():
        return None
    row = named(name)
    url = changes.get("source_url") or (row.source_url if row else "")
    schema = changes.get("schema") or (row.schema if row else "public")
    sync.give_connection_back()
    return sync.call(fitness.try_out, Listed(0, name, url, schema, [])) if url else None


def validate(name: str, changes: Mapping[str, Any]) -> None:
    """Raises MessageIllegal for a name, a schema or a URL that breaks a rule."""
    validate_name(name)
    if not SCHEMA.fullmatch(changes.get("schema", "public")):
        raise MessageIllegal(
            "schema is not a name that PostgreSQL accepts without quotes: give at most 63 small letters, digits and _, "
            "with no digit at the start."
        )
    if "source_url" in changes:
        places.read(changes["source_url"])


def put(name: str, changes: Mapping[str, Any], failure: str | None = None) -> tuple[Outbox, bool]:
    """Creates the outbox, or changes the given fields, with the failure of `try_out`. Returns the outbox and whether it
    is new.

    Raises MessageIllegal, for example for a new outbox without URL or topics. Every process uses the change within
    seconds.
    """
    validate(name, changes)
    changes = {**changes, "failure": failure, "failed_at": None if failure is None else Now()}
    if "source_url" in changes:
        changes |= places.read(changes["source_url"]).shown
    try:
        return _put(name, changes)
    except IntegrityError:
        # Another request has created the outbox since it was looked up.
        return _put(name, changes)


def _put(name: str, changes: Mapping[str, Any]) -> tuple[Outbox, bool]:
    with transaction.atomic():
        row = Outbox.objects.select_for_update().filter(name=name).first()
        if row is not None:
            for column, value in changes.items():
                setattr(row, column, value)
            row.save(update_fields=list(changes))
            row.refresh_from_db()
            return row, False
        if not changes.get("source_url") or not changes.get("topics"):
            raise MessageIllegal("A new outbox needs url and topics.")
        if Outbox.objects.count() >= MAX_OUTBOXES:
            raise MessageIllegal(f"There are {MAX_OUTBOXES} outboxes, which is the limit: delete one first.")
        made = Outbox.objects.create(name=name, **changes)
        made.refresh_from_db()
        return made, True


def remove(row: Outbox) -> None:
    """Removes an outbox from the registry. Its table in the source stays, with its rows."""
    row.delete()
