"""Authenticates a request of the control plane before a byte of its body is read."""

import asyncio
from importlib import import_module

from django.conf import settings
from django.contrib import auth
from django.db import DatabaseError, connection
from django.http import HttpRequest, parse_cookie

from mqbroker.access import KeyRing, is_signed_in
from store.db.connections import away
from store.errors import Unauthenticated

SessionStore = import_module(settings.SESSION_ENGINE).SessionStore


async def require(headers: dict[bytes, bytes], keys: KeyRing) -> None:
    """Raises Unauthenticated unless the request bears a known key or the session of a console user.

    The view checks what the caller may do.
    """
    authorization = headers.get(b"authorization")
    cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
    session_key = cookies.get(settings.SESSION_COOKIE_NAME)
    if authorization is None and session_key:
        # In a thread of its own: the lookup may wait for a connection, and messages must not wait for it.
        if not await asyncio.to_thread(_is_of_console_user, session_key):
            raise Unauthenticated("The session is over: sign in at /console/, or send an API key.")
    else:
        await keys.caller(authorization or b"")


def _is_of_console_user(session_key: str) -> bool:
    request = HttpRequest()
    request.session = SessionStore(session_key)
    try:
        request.user = auth.get_user(request)
        return is_signed_in(request)
    except DatabaseError as problem:
        raise away(problem) from problem
    finally:
        # A connection that this thread kept would serve no other request.
        connection.close()
