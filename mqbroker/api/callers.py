"""Authenticates a request outside of the data plane before a byte of its body is read."""

import asyncio
from importlib import import_module

from django.conf import settings
from django.contrib import auth
from django.db import DatabaseError, connection
from django.http import HttpRequest, parse_cookie

from mqbroker.rights import KeyRing
from mqbroker.rights import is_signed_in as has_role
from mqbroker.wire.exchange import Exchange
from store.db.connections import away
from store.errors import SystemBusy, Unauthenticated

SessionStore = import_module(settings.SESSION_ENGINE).SessionStore


async def require(exchange: Exchange, keys: KeyRing) -> None:
    """Raises Unauthenticated unless the request has a valid key or the session of a console user.

    If the body is still arriving, raises NoPermission for a key that may change nothing in the control plane, because
    the body would take memory from others. The view checks the caller's rights.
    """
    authorization = exchange.headers.get(b"authorization")
    session_key = _session_of(exchange.headers)
    if authorization is None and session_key:
        if not await _is_of_console_user(session_key):
            raise Unauthenticated("The console session has ended: sign in at /console/, or send an API key.")
        return
    caller = await keys.caller(authorization or b"")
    # A key with `consume` may change a subscription.
    if not exchange.is_whole and not caller.has_any("consume"):
        caller.require_manage()


async def is_signed_in(headers: dict[bytes, bytes]) -> bool:
    """Whether the request has the session of a console user; False while the database is away."""
    session_key = _session_of(headers)
    try:
        return bool(session_key) and await _is_of_console_user(session_key)
    except SystemBusy:
        return False


def _session_of(headers: dict[bytes, bytes]) -> str:
    cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
    return cookies.get(settings.SESSION_COOKIE_NAME, "")


async def _is_of_console_user(session_key: str) -> bool:
    # Another thread looks the session up: the look-up may wait for a connection, and messages must not wait with it.
    return await asyncio.to_thread(_look_up, session_key)


def _look_up(session_key: str) -> bool:
    request = HttpRequest()
    request.session = SessionStore(session_key)
    try:
        request.user = auth.get_user(request)
        return has_role(request)
    except DatabaseError as problem:
        raise away(problem) from problem
    finally:
        # A connection that stays with a thread of this pool could not be used by other requests.
        connection.close()
