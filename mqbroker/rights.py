"""Access rights: API keys with their scopes on both planes, and the console's session on the control plane."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from access import key_limits, keys, roles
from access.callers import Caller
from store.cells import cells
from store.db import connections
from store.db.ttl_cache import TtlCache
from store.errors import Unauthenticated
from store.notices.caches import LONGEST_CACHED_SECONDS

# Every process must refuse a revoked key within 5 s, so the result of a key's look-up is used for at most this time.
KEY_BELIEVED_SECONDS = LONGEST_CACHED_SECONDS
# The longest Authorization header that is remembered; a header with a key of the broker has 53 bytes.
MAX_AUTHORIZATION = 256
# Parameters of paths that are names of topics, groups and subscriptions.
NAMES_OF_PATHS = ("topic", "group", "name")
NO_KEY = "No API key: send the header `Authorization: Bearer <api key>`."
KEY_UNKNOWN = "The API key is unknown, revoked or expired: create a new key at /v1/api-keys."


class KeyRing:
    """The callers that this process has looked up, by their Authorization header; each entry is used for
    KEY_BELIEVED_SECONDS.
    """

    def __init__(self) -> None:
        self._callers: TtlCache[bytes, Caller] = TtlCache(KEY_BELIEVED_SECONDS)

    def forget_all(self) -> None:
        """Drops all cached callers, because another process may have changed keys."""
        self._callers.forget_all()

    def known(self, authorization: bytes) -> Caller | None:
        """The cached caller for an Authorization header; None if the cache has no recent look-up of the header."""
        return self._callers.known(authorization)

    async def caller(self, authorization: bytes) -> Caller:
        """The caller for an Authorization header.

        Raises Unauthenticated when the header is empty, or its key is unknown, revoked or expired.
        """
        key = key_of(authorization.decode("latin-1"))
        if key is None:
            raise Unauthenticated(NO_KEY)
        # A longer header has blanks around its key. It is not cached, because it could take the memory of many other
        # entries.
        is_short = len(authorization) <= MAX_AUTHORIZATION
        caller = await (self._callers.get(authorization, self._look_up(authorization, key)) if is_short else _find(key))
        if caller is None:
            raise Unauthenticated(KEY_UNKNOWN)
        return caller

    def _look_up(self, authorization: bytes, key: str) -> Callable[[], Awaitable[Caller | None]]:
        return lambda: cells.or_last(self._callers, authorization, lambda: _find(key))


async def _find(key: str) -> Caller | None:
    rows = await connections.read_control(keys.FIND_KEY, {"digest": keys.digest_of(key)})
    if not rows:
        return None
    row = rows[0]
    return Caller(row.name, tuple(row.scopes), namespace=row.namespace, allowance=key_limits.of(row))


def key_of(authorization: str) -> str | None:
    """The key of an Authorization header; None when the header has no key."""
    scheme, _, key = authorization.partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


class ApiKeyAuthentication(BaseAuthentication):
    """The caller of the control plane, by a key that is read from the database for each request."""

    def authenticate(self, request: Request) -> tuple[Caller, str] | None:
        key = key_of(request.headers.get("Authorization", ""))
        if key is None:
            return None
        row = keys.holder(key)
        if row is None:
            raise Unauthenticated(KEY_UNKNOWN)
        return Caller(row.name, tuple(row.scopes), namespace=row.namespace), key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class ConsoleSession(SessionAuthentication):
    """A signed-in console user; unsafe methods need the CSRF token."""


class MayManage(BasePermission):
    """Allows the scope `manage`, and console users: every role may read, and a change needs the role of its action."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if user is None:
            raise Unauthenticated(NO_KEY)
        if isinstance(user, Caller):
            if view.in_namespaces:
                user.require_manage_names(*named_in(view.kwargs))
            else:
                user.require_manage()
            return True
        if roles.of(user) is None:
            return False
        if request.method not in SAFE_METHODS:
            roles.require(user, view.action_of(request.method))
        return True


class MayLook(MayManage):
    """Allows any key and signed-in console users: for answers that every caller may read."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if isinstance(request.user, Caller):
            return True
        return super().has_permission(request, view)


class MayMeasure(MayManage):
    """Allows the scope `metrics` or `manage`, and signed-in console users: for numbers about the whole broker.

    A view with `in_namespaces` limits its numbers to the caller's namespace.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if isinstance(request.user, Caller):
            request.user.require_metrics(is_narrowed=view.in_namespaces)
            return True
        return super().has_permission(request, view)


class MaySubscribe(MayManage):
    """Allows the scope `manage`, or scopes `consume` and `read`, for subscriptions.

    The view checks for which group and topic.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if isinstance(request.user, Caller) and not request.user.may_manage_names():
            request.user.require_any("consume")
            request.user.require_any("read")
            return True
        return super().has_permission(request, view)


def named_in(parameters: Mapping[str, object]) -> list[str]:
    """The names of topics, groups and subscriptions among the parameters of a path."""
    return [str(parameters[name]) for name in NAMES_OF_PATHS if name in parameters]


def is_signed_in(request: HttpRequest) -> bool:
    """Whether a console user with a role sent this request."""
    user = getattr(request, "user", None)
    return user is not None and roles.of(user) is not None
