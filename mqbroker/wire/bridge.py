"""Passes an exchange to an ASGI application, Django."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from mqbroker.wire.exchange import Exchange
from mqbroker.wire.heads import Headers

# ASGI's dictionaries, whose keys depend on the type of the event.
Scope = dict[str, Any]
Event = dict[str, Any]
Receive = Callable[[], Awaitable[Event]]
Application = Callable[[Scope, Receive, Any], Awaitable[None]]

# The header that is added together with the answer's content.
LENGTH = b"content-length"


class Answered(NamedTuple):
    """A complete answer of an application."""

    status: int
    headers: Headers
    content: bytes


async def serve(exchange: Exchange, application: Application, content: bytes) -> Answered | None:
    """Calls the application for an exchange whose body was read.

    None if the application ended without an answer, for example because the caller has gone. The answer is returned and
    not sent, because sending may take long if the caller is slow, and the application may hold a thread.
    """
    answer = Gathered()
    await application(scope_of(exchange), receiver(exchange, content), answer)
    return answer.whole()


def scope_of(exchange: Exchange) -> Scope:
    """The ASGI scope of the exchange. Django keeps it: log records of failures read `request_id` there.

    Django's views read `namespace` there.
    """
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": exchange.version,
        "method": exchange.method,
        "scheme": "http",
        "path": exchange.path,
        "raw_path": exchange.target,
        "query_string": exchange.query_string,
        "root_path": "",
        "headers": exchange.header_list,
        "client": exchange.client,
        "server": exchange.server,
        "request_id": exchange.request_id.decode("latin-1"),
        "namespace": exchange.namespace,
    }


def receiver(exchange: Exchange, content: bytes) -> Receive:
    """ASGI's `receive`: returns the content, and after that waits until the caller hangs up."""
    is_given = False

    async def receive() -> Event:
        nonlocal is_given
        if not is_given:
            is_given = True
            return {"type": "http.request", "body": content, "more_body": False}
        await exchange.gone
        return {"type": "http.disconnect"}

    return receive


class Gathered:
    """ASGI's `send`: collects the application's answer."""

    def __init__(self) -> None:
        self._status = 0
        self._headers: Headers = ()
        self._parts: list[bytes] = []
        self._is_whole = False

    async def __call__(self, event: Event) -> None:
        if event["type"] == "http.response.start":
            self._status = event["status"]
            self._headers = tuple((name, value) for name, value in event["headers"] if name.lower() != LENGTH)
            return
        self._parts.append(event.get("body", b""))
        self._is_whole = not event.get("more_body", False)

    def whole(self) -> Answered | None:
        """The answer; None if it is not complete."""
        return Answered(self._status, self._headers, b"".join(self._parts)) if self._is_whole else None
