"""The ASGI handler in front of Django's: answers the data plane without middleware, signals and ORM."""

import asyncio
import contextlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

import structlog

from mqbroker.access import KeyRing
from mqbroker.api import answers, bodies, callers, limits
from mqbroker.api.answers import Answer, Page
from mqbroker.api.bodies import Application, Body, Event, Gone, Receive, Scope, Send
from mqbroker.api.requests import DataRequest
from mqbroker.api.router import Limit, Named, Route, Router, View
from store.db import pacing
from store.errors import Refusal

logger = structlog.stdlib.get_logger(__name__)

# Methods whose requests have no body that a view reads.
READING = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
CONSOLE = "/console/"
# A caller that reads nothing of its answer for so long is given up: what the answer holds keeps others from reading.
UNREAD_SECONDS = 20
REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


@dataclass(slots=True)
class Exchange:
    """One request, and the way its answer goes."""

    scope: Scope
    receive: Receive
    send: Send
    headers: dict[bytes, bytes]
    request_id: bytes

    @property
    def reads_only(self) -> bool:
        """Whether the method is one that changes nothing."""
        return self.scope["method"] in READING

    @property
    def named(self) -> dict[str, str]:
        """What a log record of this request holds."""
        name = self.request_id.decode("latin-1")
        return {"method": self.scope["method"], "path": self.scope["path"], "request_id": name}


@dataclass(slots=True)
class Call:
    """What a path and a method lead to: the view, the values of the path's parameters, the most bytes of a body."""

    view: View
    named: Named
    limit: Limit


class AsgiHandler:
    """Serves the paths of the data plane, and leaves every other request to Django's own handler.

    A request goes this way:

    1. `_find`: the path leads to a route, and the method to a view. Without a view Django's handler answers.
    2. `_request`: the key leads to a caller, which a process looks up once in three seconds; then the body is read,
       within the route's limit, the process's budget and a deadline.
    3. The view decodes the body, calls one function of an app, and returns an Answer. A Refusal becomes one, too.
    4. `_send`: what a consumer that hung up would have received is given back; else the answer leaves with the
       request's id, in parts where its messages are large.

    Django's way costs some 0.9 ms of CPU per request.
    """

    def __init__(self, routes: Iterable[Route], otherwise: Application) -> None:
        self._router = Router(routes)
        self._otherwise = otherwise
        self._keys = KeyRing()
        # A request's id is unique by the process that took it and its number there.
        self._process = secrets.token_hex(6).encode()
        self._requests = count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        exchange = Exchange(scope, receive, send, headers, self._id_of(headers))
        call = self._find(scope)
        with contextlib.suppress(Gone):
            await (self._leave(exchange) if call is None else self._serve(exchange, call))

    def _id_of(self, headers: dict[bytes, bytes]) -> bytes:
        given = headers.get(b"x-request-id")
        if given is not None and REQUEST_ID.fullmatch(given):
            return given
        return b"%s-%d" % (self._process, next(self._requests))

    def _find(self, scope: Scope) -> Call | None:
        found = self._router.find(scope["path"])
        if found is None:
            return None
        route, named = found
        # HEAD is a GET whose body the server keeps back.
        view = route.views.get("GET" if scope["method"] == "HEAD" else scope["method"])
        return None if view is None else Call(view, named, route.limit)

    async def _serve(self, exchange: Exchange, call: Call) -> None:
        body = Body(exchange.receive, exchange.headers)
        request: DataRequest | None = None
        try:
            try:
                request = await self._request(exchange, body, call.limit)
                answer = await call.view(request, **call.named)
            except Refusal as refusal:
                answer = answers.refused(refusal)
            except Gone:
                raise
            except Exception:
                logger.exception("a request failed", **exchange.named)
                answer = answers.failed()
            await _send(exchange, answer, body, request)
        finally:
            body.release()
            if request is not None:
                request.close()

    async def _request(self, exchange: Exchange, body: Body, limit: Limit) -> DataRequest:
        """The request, its caller known and its body read, in this order.

        Raises Unauthenticated, what `Body.read` raises, or Gone.
        """
        caller = await self._keys.caller(exchange.headers.get(b"authorization"))
        content = b"" if exchange.reads_only and body.is_unread else await body.read(limit())
        return DataRequest(exchange.scope, exchange.headers, caller, content, exchange.receive, exchange.request_id)

    async def _leave(self, exchange: Exchange) -> None:
        """Lets Django's handler answer, with a body that was read here: Django would spool one of any size, and only
        then authenticate its caller.
        """
        is_form = exchange.scope["path"].startswith(CONSOLE)
        budgets = bodies.budgets()
        body = Body(exchange.receive, exchange.headers, budgets.forms if is_form else budgets.control)
        try:
            content = await self._content(exchange, body, is_form=is_form)
            await self._otherwise(_scope_for_django(exchange), body.as_read(content), _bearing_id(exchange))
        except Refusal as refusal:
            await _write(exchange, answers.refused(refusal), unread=exchange.receive)
        finally:
            body.release()

    async def _content(self, exchange: Exchange, body: Body, *, is_form: bool) -> bytes:
        """The body of a request outside of the data plane; that of a method that only reads stays unread."""
        if not body.is_unread:
            return await body.read(0)
        if exchange.reads_only:
            return b""
        if is_form:
            # The login is open to all, and the other pages redirect unknown callers to it.
            return await body.read(limits.FORM_BYTES)
        await callers.require(exchange.headers, self._keys)
        return await body.read(limits.CONTROL_BYTES)


async def _send(exchange: Exchange, answer: Answer, body: Body, request: DataRequest | None) -> None:
    if answer.give_back is not None and request is not None:
        # A hang-up that arrived while the answer was encoded becomes visible within two turns of the event loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if await answer.give_back(request.gone):
            return
    if isinstance(answer, Page) and request is not None:
        body.release()
        await _write_page(exchange, answer, request)
    else:
        await _write(exchange, answer, unread=exchange.receive if body.is_unread else None)


async def _write_page(exchange: Exchange, page: Page, request: DataRequest) -> None:
    """Sends a page part by part, each once the one before it has left. Small requests run between the parts.

    A caller that hangs up before the last part, or reads nothing for UNREAD_SECONDS, has received no message: half an
    object is no JSON. What it would have received is given back.
    """
    await _start(exchange, page, ())
    try:
        parts = page.parts()
        while True:
            async with pacing.step():
                part = next(parts, b"")
            if not part:
                break
            if page.give_back is not None and await page.give_back(request.gone):
                break
            async with asyncio.timeout(UNREAD_SECONDS):
                await exchange.send({"type": "http.response.body", "body": part, "more_body": True})
    except TimeoutError:
        logger.warning("an answer is given up: its caller does not read", seconds=UNREAD_SECONDS)
        if page.give_back is not None:
            request.gone.cancel()
            await asyncio.wait((request.gone,))
            await page.give_back(request.gone)
    await exchange.send({"type": "http.response.body", "body": b""})


async def _write(exchange: Exchange, answer: Answer, unread: Receive | None) -> None:
    """Sends an answer; of a body that is `unread`, some is dropped before the connection is closed."""
    content = answer.content
    await _start(exchange, answer, ((b"content-length", b"%d" % len(content)),))
    if unread is None:
        await exchange.send({"type": "http.response.body", "body": content})
        return
    # The server stops reading as soon as the answer is whole.
    await exchange.send({"type": "http.response.body", "body": content[:-1], "more_body": True})
    await bodies.pass_over(unread)
    await exchange.send({"type": "http.response.body", "body": content[-1:]})


async def _start(exchange: Exchange, answer: Answer, headers: answers.Headers) -> None:
    all_headers = [*answer.headers, (b"x-request-id", exchange.request_id), *headers]
    await exchange.send({"type": "http.response.start", "status": answer.status, "headers": all_headers})


def _scope_for_django(exchange: Exchange) -> Scope:
    """Django keeps the scope with the request: its log records of a failure read the id there."""
    scope = {**exchange.scope, "request_id": exchange.request_id.decode("latin-1")}
    if exchange.headers.get(b"host") == b"":
        # granian's form of a missing Host header, as in HTTP/1.0: Django then takes the address it listens on.
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"host"]
    return scope


def _bearing_id(exchange: Exchange) -> Send:
    """A `send` that adds the request's id to the answer of Django's handler."""

    async def send_with_id(event: Event) -> None:
        if event["type"] == "http.response.start":
            event["headers"] = [*event["headers"], (b"x-request-id", exchange.request_id)]
        await exchange.send(event)

    return send_with_id
