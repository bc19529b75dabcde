"""Secrets of endpoints and subscriptions, and URLs of cells, are stored sealed; the keys are not in the database.

The first key of SECRETS_KEYS seals; each key opens. Without a key, secrets are stored as plain text. The prefix of the
stored text shows whether it is sealed.
"""

import base64
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import structlog
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db.models import F, Model, QuerySet, TextField
from django.db.models.functions import Cast

logger = structlog.stdlib.get_logger(__name__)

# The beginnings of unsealed texts: of a secret, or of the URL of a cell.
PLAIN = ("whsec_", "postgres://", "postgresql://")


class SecretUnreadable(Exception):
    """A secret was sealed with a key that this process does not have."""


def seal(secret: str) -> str:
    """The text that is stored for a secret: sealed if there is a key. An empty secret is stored as it is."""
    if not secret or not settings.SECRETS_KEYS:
        return secret
    return _fernets(settings.SECRETS_KEYS).encrypt(secret.encode()).decode()


def opened(stored: str) -> str:
    """The secret of a stored text. Raises SecretUnreadable."""
    return stored if _is_plain(stored) else _opened(stored, settings.SECRETS_KEYS)


def _is_plain(stored: str) -> bool:
    return not stored or stored.startswith(PLAIN)


# Opened secrets are cached: opening costs 30 µs, and each claim of checks or pushes reads the row with the secret.
@lru_cache(maxsize=4_096)
def _opened(stored: str, keys: tuple[str, ...]) -> str:
    try:
        return _fernets(keys).decrypt(stored.encode()).decode() if keys else _refuse()
    except InvalidToken:
        return _refuse()


def _refuse() -> str:
    raise SecretUnreadable("a secret is sealed under a key that is not in MQBROKER_SECRETS_KEYS")


@lru_cache
def _fernets(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([_fernet(key) for key in keys])


def _fernet(key: str) -> Fernet:
    """The cipher of a key, which is any long random text: Fernet gets its SHA-256."""
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()))


class SealedField(TextField):  # type: ignore[type-arg]  # Django's own class takes no parameters
    """A text, sealed in the database and opened when it is read; empty if it cannot be opened."""

    def get_prep_value(self, value: Any) -> Any:
        found = super().get_prep_value(value)
        return seal(found) if isinstance(found, str) else found

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        try:
            return None if value is None else opened(value)
        except SecretUnreadable as problem:
            logger.error("a secret cannot be read", reason=str(problem))
            return ""

    def deconstruct(self) -> Any:
        """Makes the column a text field without sealing in migrations, which have no keys."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.TextField", arguments, options


def unreadable(rows: QuerySet[Any]) -> list[int]:
    """The ids of rows with a secret that no key of this process can decrypt."""
    return [id_ for id_, columns in _stored(rows) if any(not _can_open(stored) for _, stored in columns)]


def reseal(rows: QuerySet[Any], *, plain_only: bool = False) -> int:
    """Seals all secrets that are not sealed with the first key. Returns how many rows it changed.

    A secret that is changed meanwhile is skipped, because it has just been sealed. Raises SecretUnreadable.
    """
    if not settings.SECRETS_KEYS:
        return 0
    changed = 0
    for id_, columns in _stored(rows):
        for column, stored in columns:
            if stored and (_is_plain(stored) or not (plain_only or _is_newest(stored))):
                found = rows.filter(id=id_).annotate(raw=Cast(F(column), TextField()))
                changed += found.filter(raw=stored).update(**{column: opened(stored)})
    return changed


def _can_open(stored: str) -> bool:
    try:
        opened(stored)
    except SecretUnreadable:
        return False
    return True


def _is_newest(stored: str) -> bool:
    try:
        _fernet(settings.SECRETS_KEYS[0]).decrypt(stored.encode())
    except InvalidToken:
        return False
    return True


def _stored(rows: QuerySet[Model]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """The id of each row, and its stored secrets by column."""
    sealed = [field.name for field in rows.model._meta.concrete_fields if isinstance(field, SealedField)]
    texts = {f"stored_{column}": Cast(F(column), TextField()) for column in sealed}
    for id_, *found in rows.annotate(**texts).values_list("id", *texts).iterator():
        yield id_, [(column, text) for column, text in zip(sealed, found, strict=True) if text is not None]
