"""The registry of namespaces: created, changed, listed and deleted."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from access.models import ApiKey
from store.db import fields
from store.errors import MessageIllegal, Refusal
from store.models import Namespace
from store.naming.namespaces import NAME, NAME_RULE
from store.notices import caches

FIELDS = fields.of(
    Namespace,
    *(
        fields.Whole(name, label, help=meaning, unset="no limit", least=1, most=most)
        for name, label, meaning, most in (
            (
                "messages_per_second",
                "Messages per second",
                "Messages that all keys of the namespace together may send at each web process",
                10**9,
            ),
            (
                "bytes_per_second",
                "Bytes per second",
                "Bytes of requests with messages, of all keys of the namespace, at each web process",
                10**12,
            ),
            (
                "max_topics",
                "Max topics",
                "Topics of the namespace, without topics of retries and dead letters",
                10**6,
            ),
            ("max_undecided", "Max undecided", "Undecided transactions that its producer groups may have", 10**9),
        )
    ),
)
LIMIT_NAMES = tuple(limit.name for limit in FIELDS)


class NamespaceNotExist(Refusal):
    """There is no namespace with this name."""

    code = "not_found"


def page(after: str, count: int, matching: str = "") -> Sequence[Namespace]:
    """Namespaces by name: the first `count` after `after` whose names contain `matching`, in any case."""
    return list(Namespace.objects.filter(name__gt=after, name__icontains=matching).order_by("name")[:count])


def named(name: str) -> Namespace | None:
    """The namespace of this name, or None."""
    return Namespace.objects.filter(name=name).first()


def find(name: str) -> Namespace:
    """The namespace of this name.

    Raises MessageIllegal for an invalid name, or NamespaceNotExist.
    """
    validate_name(name)
    found = named(name)
    if found is None:
        raise absent(name)
    return found


def absent(name: str) -> NamespaceNotExist:
    """The refusal of a namespace name for which there is no namespace."""
    return NamespaceNotExist(f"There is no namespace {name}: PUT /v1/namespaces/{name} makes it.")


def validate_name(name: str) -> None:
    """Raises MessageIllegal for an invalid name."""
    if not re.fullmatch(NAME, name):
        raise MessageIllegal(f"{name[:60]!r}: {NAME_RULE}.")


def put(name: str, changes: Mapping[str, Any]) -> tuple[Namespace, bool]:
    """Creates the namespace, or changes its given FIELDS. Returns its row, and whether the row was created.

    Raises MessageIllegal. A change takes effect in each process.
    """
    validate_name(name)
    with transaction.atomic():
        row, made = Namespace.objects.select_for_update().get_or_create(name=name, defaults=changes)
        if not made:
            for column, value in changes.items():
                setattr(row, column, value)
            row.save(update_fields=list(changes))
        caches.drop_everywhere()
    return row, made


def remove(row: Namespace) -> None:
    """Deletes a namespace with its limits. Its topics and groups stay, for keys without a namespace.

    Raises MessageIllegal while API keys are bound to it.
    """
    with transaction.atomic():
        lock(row.name)
        keys = list(ApiKey.objects.filter(namespace=row.name).order_by("name").values_list("name", flat=True)[:3])
        if keys:
            raise MessageIllegal(
                f"API keys are bound to the namespace {row.name} ({', '.join(keys)}, …): revoke these keys first."
            )
        row.delete()
        caches.drop_everywhere()


def lock(name: str) -> None:
    """Locks the row of a namespace until the end of the caller's transaction. Raises NamespaceNotExist."""
    if Namespace.objects.select_for_update().filter(name=name).first() is None:
        raise absent(name)
