"""The way of an exchange to an ASGI application: Django's."""

from collections.abc import Awaitable, Callable
from typing import Any

from mqbroker.http.exchange import Exchange

# ASGI's dictionaries: what a key holds depends on the type of the event.
Scope = dict[str, Any]
Event = dict[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Scope, Receive, Any], Awaitable[None]]


async def serve(exchange: Exchange, application: Application, content: bytes) -> None:
    """Has the application answer the exchange, whose body was read."""
    await application(scope_of(exchange), receiver(exchange, content), sender(exchange))


def scope_of(exchange: Exchange) -> Scope:
    """The request; Django keeps it with its own, and its log records of a failure read `request_id` there."""
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
    }


def receiver(exchange: Exchange, content: bytes) -> Receive:
    """A `receive` that returns the content, and afterwards the caller's hang-up."""
    is_given = False

    async def receive() -> Event:
        nonlocal is_given
        if not is_given:
            is_given = True
            return {"type": "http.request", "body": content, "more_body": False}
        await exchange.gone
        return {"type": "http.disconnect"}

    return receive


def sender(exchange: Exchange) -> Send:
    """A `send` that adds the request's id to the answer."""

    async def send(event: Event) -> None:
        if event["type"] == "http.response.start":
            exchange.start(event["status"], (*event["headers"], (b"x-request-id", exchange.request_id)))
            return
        await exchange.send(event.get("body", b""))
        if not event.get("more_body", False):
            exchange.end()

    return send
