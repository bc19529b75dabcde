"""Who may call: API keys with their scopes, on both planes, and the console's session on the control plane."""

import fnmatch
import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from mqbroker.models import ApiKey
from mqbroker.rows import KeyRow
from store.db import connections
from store.db.statements import Statement
from store.db.ttl_cache import Memory
from store.errors import NoPermission, Unauthenticated

# A revoked key must be refused within 5 s by every process: no answer about a key is believed for longer than this.
KEY_BELIEVED_SECONDS = 3.0
FIND_KEY = Statement(__file__, "find_key", KeyRow)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever holds a key: its name and what it may do."""

    name: str
    scopes: tuple[str, ...]
    is_authenticated: bool = True

    def may(self, verb: str, name: str) -> bool:
        """Whether the key allows `produce` on a topic or `consume` in a group of this name."""
        return any(
            (scope == "manage" and verb == "manage") or fnmatch.fnmatchcase(f"{verb}:{name}", scope)
            for scope in self.scopes
        )

    def require(self, verb: str, name: str) -> None:
        """Raises NoPermission unless the key allows it."""
        if not self.may(verb, name):
            raise NoPermission(f"The key {self.name!r} lacks the scope {verb}:{name}: add it at /v1/api-keys.")

    def require_manage(self) -> None:
        """Raises NoPermission unless the key may manage."""
        if "manage" not in self.scopes:
            raise NoPermission(f"The key {self.name!r} lacks the scope manage: add it at /v1/api-keys.")

    def require_any(self, verb: str) -> None:
        """Raises NoPermission unless the key has some scope of this verb."""
        if not any(scope.split(":")[0] == verb for scope in self.scopes):
            raise NoPermission(f"The key {self.name!r} has no {verb} scope: add one at /v1/api-keys.")


def digest_of(key: str) -> bytes:
    """What is kept of a key. Keys are long random texts, so that one fast hash is enough."""
    return hashlib.sha256(key.encode()).digest()


def make_key() -> str:
    """A new key, to be shown once."""
    return "mq_" + secrets.token_urlsafe(32)


def store_key(name: str, key: str, scopes: list[str], expires_at: datetime | None = None) -> ApiKey:
    """Keeps a key under a name; the same name again replaces the key."""
    fields = {"digest": digest_of(key), "hint": key[-4:], "scopes": scopes, "expires_at": expires_at}
    return ApiKey.objects.update_or_create(name=name, defaults=fields)[0]


class KeyRing:
    """The keys that this process has seen, each believed for KEY_BELIEVED_SECONDS."""

    def __init__(self) -> None:
        self._callers: Memory[str, Caller] = Memory(KEY_BELIEVED_SECONDS)

    async def caller(self, authorization: str | None) -> Caller:
        """Whoever sent this Authorization header.

        Raises Unauthenticated when there is none, or its key is unknown, revoked or expired.
        """
        scheme, _, key = (authorization or "").partition(" ")
        key = key.strip()
        if scheme.lower() != "bearer" or not key:
            raise Unauthenticated("No API key: send the header `Authorization: Bearer <api key>`.")
        caller = await self._callers.get(key, lambda: self._look_up(key))
        if caller is None:
            raise Unauthenticated("The API key is unknown, revoked or expired: make another at /v1/api-keys.")
        return caller

    async def _look_up(self, key: str) -> Caller | None:
        rows = await connections.read(FIND_KEY, {"digest": digest_of(key)})
        return Caller(rows[0].name, tuple(rows[0].scopes)) if rows else None


class ApiKeyAuthentication(BaseAuthentication):
    """The control plane's way of asking who holds the key; it asks the database each time."""

    def authenticate(self, request: Request) -> tuple[Caller, str] | None:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            return None
        row = ApiKey.objects.filter(digest=digest_of(key.strip())).extra(where=["coalesce(expires_at > now(), true)"])
        found = row.first()
        if found is None:
            raise Unauthenticated("The API key is unknown, revoked or expired: make another at /v1/api-keys.")
        return Caller(found.name, tuple(found.scopes)), key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class ConsoleSession(SessionAuthentication):
    """A signed-in console user; unsafe methods need the CSRF token."""


class MayManage(BasePermission):
    """The scope `manage`, or a console session: of the staff to read, of a superuser to change."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if user is None:
            raise Unauthenticated("No API key: send the header `Authorization: Bearer <api key>`.")
        if isinstance(user, Caller):
            if "manage" not in user.scopes:
                raise NoPermission(f"The key {user.name!r} lacks the scope manage: add it at /v1/api-keys.")
            return True
        if not (user.is_authenticated and user.is_staff):
            return False
        if not user.is_superuser and request.method not in SAFE_METHODS:
            raise NoPermission(
                f"The console user {user.get_username()!r} is no superuser and may only read here: "
                "sign in as a superuser, or use an API key with the scope manage."
            )
        return True


class MayLook(MayManage):
    """Any key, or a signed-in console user: for what every caller may see."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if isinstance(request.user, Caller):
            return True
        return super().has_permission(request, view)


def is_signed_in(request: HttpRequest) -> bool:
    """Whether a console user of the staff sent this request."""
    user = getattr(request, "user", None)
    return bool(user and user.is_authenticated and user.is_staff)
