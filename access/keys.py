"""The registry of API keys: created, listed, found, changed and revoked."""

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from access import namespaces
from access.models import ApiKey
from access.rows import KeyRow
from store.db import fields
from store.db.statements import Statement
from store.errors import MessageIllegal, Refusal
from store.naming.names import CHARACTERS, MAX_CHARACTERS
from store.naming.namespaces import MAX_CHARACTERS as MAX_NAMESPACE
from store.notices import caches

# A name is part of a path, and must not look like an id, so it does not begin with a digit.
NAME = r"^[A-Za-z_][A-Za-z0-9_ .:@+-]{0,99}$"
NAME_RULE = "a name begins with a letter or _, and has 1 to 100 letters, digits, blanks and _ . : @ + -"
SCOPE = f"^(manage|metrics|(produce|consume|read):[*{CHARACTERS}]{{1,{MAX_CHARACTERS}}})$"
SCOPE_RULE = (
    "a scope is manage, metrics, produce:<topic pattern>, consume:<group pattern> or read:<topic pattern>, where * "
    "stands for any text"
)
MAX_SCOPES = 100
# The maximum of each limit is far above the capacity of a broker.
LIMITS = tuple(
    fields.Whole(name, label, help=meaning, unset="no limit", least=1, most=most)
    for name, label, meaning, most in (
        ("messages_per_second", "Messages per second", "Messages that the key may send at each web process", 10**9),
        ("bytes_per_second", "Bytes per second", "Bytes of its requests with messages at each web process", 10**12),
        ("max_undecided", "Max undecided", "Undecided transactions of the key, in the whole broker", 10**9),
    )
)
LIMIT_NAMES = tuple(limit.name for limit in LIMITS)
FIELDS = fields.of(
    ApiKey,
    fields.Words(
        "scopes",
        "Scopes",
        help="Tick scopes of the whole broker, or type narrower scopes such as produce:orders, read:orders-* or "
        "consume:coupons",
        needed=True,
        pattern=SCOPE,
        rule=SCOPE_RULE,
        most=MAX_SCOPES,
        between=" ",
        offered=("manage", "metrics", "produce:*", "consume:*", "read:*"),
    ),
    fields.Text(
        "namespace",
        "Namespace",
        help="A key with a namespace uses bare names and sees only this namespace",
        unset="the key sees all namespaces, by whole names",
        most=MAX_NAMESPACE,
    ),
    fields.Time("expires_at", "Expires at", unset="never"),
    *LIMITS,
)
# The most keys that the metrics list.
MAX_LISTED = 1000
FIND_KEY = Statement(__file__, "find_key", KeyRow)


class KeyNotExist(Refusal):
    """There is no API key with this name or id."""

    code = "not_found"


def digest_of(key: str) -> bytes:
    """The stored form of a key: its SHA-256. One fast hash is enough, because keys are long random texts."""
    return hashlib.sha256(key.encode()).digest()


def make_key() -> str:
    """A new key, to be shown once."""
    return "mq_" + secrets.token_urlsafe(32)


def store_key(name: str, key: str, scopes: list[str], expires_at: datetime | None = None) -> ApiKey:
    """Stores a key under a name; replaces an existing key of this name."""
    fields = {"digest": digest_of(key), "hint": key[-4:], "scopes": scopes, "expires_at": expires_at}
    return ApiKey.objects.update_or_create(name=name, defaults=fields)[0]


def holder(key: str) -> ApiKey | None:
    """The row of a key; None when the key is unknown, revoked or expired by the database's clock."""
    return ApiKey.objects.filter(digest=digest_of(key)).exclude(expires_at__lte=Now()).first()


def page(after: str, count: int, matching: str = "", namespace: str | None = None) -> Sequence[ApiKey]:
    """API keys by name: the first `count` after `after` whose names contain `matching`, in any case; with a
    namespace, only its keys.
    """
    found = ApiKey.objects.filter(name__gt=after, name__icontains=matching)
    return list((found if namespace is None else found.filter(namespace=namespace)).order_by("name")[:count])


def find(name_or_id: str) -> ApiKey:
    """The key of this name, or of this id.

    Raises KeyNotExist.
    """
    found = None
    if re.fullmatch(NAME, name_or_id):
        found = ApiKey.objects.filter(name=name_or_id).first()
    elif re.fullmatch(r"[0-9]{1,18}", name_or_id):
        found = ApiKey.objects.filter(id=int(name_or_id)).first()
    if found is None:
        raise KeyNotExist(f"There is no API key {name_or_id[:100]!r}: GET /v1/api-keys lists them.")
    return found


def limits() -> Sequence[ApiKey]:
    """The keys that have a limit or had a request refused, at most MAX_LISTED, by name."""
    limited = Q(refused__gt=0) | Q(*((f"{name}__isnull", False) for name in LIMIT_NAMES), _connector=Q.OR)
    return list(ApiKey.objects.filter(limited).order_by("name")[:MAX_LISTED])


def validate_name(name: str) -> None:
    """Raises MessageIllegal for a name that breaks the rule."""
    if not re.fullmatch(NAME, name):
        raise MessageIllegal(f"{name[:100]!r}: {NAME_RULE}.")


def make(name: str, given: Mapping[str, Any]) -> tuple[ApiKey, str]:
    """Creates a key with these FIELDS; returns its row and the key. Only the digest of the key is stored.

    Raises MessageIllegal for a name that is in use or an expiry in the past by the database's clock, and
    NamespaceNotExist.
    """
    key = make_key()
    try:
        with transaction.atomic():
            row = ApiKey.objects.create(name=name, digest=digest_of(key), hint=key[-4:], **given)
            require_unexpired(row)
            _require_namespace(row)
    except IntegrityError as problem:
        raise MessageIllegal(f"name: there is already an API key {name!r}: revoke this key first.") from problem
    return row, key


def change(name_or_id: str, given: Mapping[str, Any]) -> ApiKey:
    """Changes the given FIELDS of a key. The change takes effect in each process.

    Raises KeyNotExist, and MessageIllegal for an expiry in the past by the database's clock.
    """
    with transaction.atomic():
        row = find(name_or_id)
        ApiKey.objects.filter(id=row.id).update(**given)
        if given.get("expires_at") is not None:
            require_unexpired(row)
        caches.drop_everywhere()
        changed = find(str(row.id))
        _require_namespace(changed)
        return changed


def require_unexpired(row: ApiKey) -> None:
    """Raises MessageIllegal when the row's expiry is in the past."""
    if ApiKey.objects.filter(id=row.id, expires_at__lte=Now()).exists():
        raise MessageIllegal("expires_at: this time is in the past. Give a time in the future.")


def _require_namespace(row: ApiKey) -> None:
    """Raises NamespaceNotExist if the key is bound to a namespace that does not exist."""
    if row.namespace is not None:
        namespaces.lock(row.namespace)


def revoke(name_or_id: str) -> None:
    """Deletes a key: each process refuses the key from then on.

    Raises KeyNotExist.
    """
    with transaction.atomic():
        find(name_or_id).delete()
        caches.drop_everywhere()
