"""The lean ASGI handler of the data plane: request, resolver, view, response. No middleware, no signals, no ORM.

Django's stock async path costs some 0.9 ms of CPU per request, this one 0.06 ms. The views are plain async Django
views.
"""

import asyncio
import contextlib
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any, TypeVar

import msgspec
import structlog
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, URLPattern, URLResolver
from django.urls.resolvers import RegexPattern

from mqbroker import errors
from mqbroker.access import Caller, KeyRing
from mqbroker.api import bodies, callers, limits
from mqbroker.api.bodies import Body, Gone, Receive, Send
from store.budget import Hold
from store.errors import BadRequest, MessageIllegal, Refusal

logger = structlog.stdlib.get_logger(__name__)

View = Callable[..., Awaitable[HttpResponse]]
Shape = TypeVar("Shape")

Limit = Callable[[], int]

# Methods whose requests have no body that anybody reads.
READING = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
CONSOLE = "/console/"
# An answer with larger bodies is sent in parts.
WHOLE_BYTES = 256 * 1024
# A caller that reads nothing of its answer for so long is given up: what it holds keeps others from reading.
UNREAD_SECONDS = 20
REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class DataRequest(HttpRequest):
    """A request of the data plane: what the views need of it, without the parts of Django's that cost time."""

    caller: Caller
    # What the answer holds of the process's memory, until it is sent.
    hold: Hold

    def __init__(self, scope: dict[str, Any], headers: dict[bytes, bytes], body: bytes, receive: Receive) -> None:
        # Django's own __init__ builds four dictionaries per request that no view here reads.
        self.method = scope["method"]
        self.path = self.path_info = scope["path"]
        self.scope = scope
        self.raw_headers = headers
        self._body = body
        self._receive = receive

    @contextlib.contextmanager
    def watched(self) -> Iterator[asyncio.Future[Any]]:
        """A future that is done as soon as the caller has gone away."""
        gone = asyncio.ensure_future(self._receive())
        try:
            yield gone
        finally:
            gone.cancel()

    def header(self, name: bytes) -> str | None:
        """A header's value, by its lower-case name."""
        value = self.raw_headers.get(name)
        return None if value is None else value.decode("latin-1")


def decode(shape: type[Shape], body: bytes) -> Shape:
    """The body as the shape of a request.

    Raises BadRequest when it is no JSON, MessageIllegal when a field is missing, unknown or of the wrong type.
    """
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as problem:
        _require_json(body)
        raise MessageIllegal(f"The request does not have the right shape: {problem}.") from problem
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise _no_json(problem) from problem


def _require_json(body: bytes) -> None:
    """Raises BadRequest for what is no JSON: a field that breaks a rule ends the decoding before the rest is read."""
    try:
        msgspec.json.decode(body)
    except msgspec.ValidationError:
        return  # It is JSON, with a number that no type here holds.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise _no_json(problem) from problem


def _no_json(problem: Exception) -> BadRequest:
    return BadRequest(f"The body is no JSON: {problem}.")


def answer(result: object, status: int = 200) -> HttpResponse:
    """A JSON answer."""
    return HttpResponse(msgspec.json.encode(result), status=status, content_type="application/json")


class Page(HttpResponse):
    """An answer with messages: one large object that is encoded and sent message by message.

    Encoding 16 MiB at once would hold the event loop for 60 ms, and the memory of all copies.
    """

    def __init__(self, entries: Iterator[dict[str, Any]], more: dict[str, Any]) -> None:
        super().__init__(content_type="application/json")
        self._entries = entries
        self._more = more

    def parts(self) -> Iterator[bytes]:
        """The JSON of the whole object."""
        opening = b'{"messages":['
        for entry in self._entries:
            yield opening + msgspec.json.encode(entry)
            opening = b","
        start = opening if opening != b"," else b""
        rest = msgspec.json.encode(self._more)
        yield start + b"]" + (b"," + rest[1:] if self._more else b"}")


def page(hold: Hold, entries: Iterator[dict[str, Any]], more: dict[str, Any] | None = None) -> HttpResponse:
    """A JSON answer with `messages`, in parts when they are large, and more fields."""
    if hold.size <= WHOLE_BYTES:
        return answer({"messages": list(entries), **(more or {})})
    return Page(entries, more or {})


class LeanHandler:
    """Serves the paths of the data plane, and hands every other request to Django's stock handler."""

    def __init__(self, routes: list[URLPattern], otherwise: Any) -> None:
        self._resolver = URLResolver(RegexPattern(r"^/"), routes)
        self._otherwise = otherwise
        self._keys = KeyRing()
        # A request's id is unique by the process that took it and its number there.
        self._process = secrets.token_hex(6).encode()
        self._requests = count()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        request_id = headers.get(b"x-request-id", b"")
        if not REQUEST_ID.fullmatch(request_id):
            request_id = b"%s-%d" % (self._process, next(self._requests))
        view, named, limit = self._find(scope)
        with contextlib.suppress(Gone):
            if view is None:
                await self._hand_over(scope, receive, send, headers, request_id)
                return
            body = Body(receive, headers)
            try:
                with Hold() as hold:
                    response = await self._respond(scope, receive, headers, body, hold, limit, view, named, request_id)
                    if isinstance(response, Page):
                        body.release()
                        await _write_page(response, request_id, send)
                    else:
                        await _write(response, request_id, send, receive if body.is_unread else None)
            finally:
                body.release()

    def _find(self, scope: dict[str, Any]) -> tuple[View | None, dict[str, Any], Limit]:
        try:
            match = self._resolver.resolve(scope["path"])
        except Resolver404:
            return None, {}, limits.call
        views: dict[str, View] = match.func.views  # type: ignore[attr-defined]  # ours: see `routes.by_method`
        # HEAD is a GET whose body the server keeps back.
        view = views.get("GET" if scope["method"] == "HEAD" else scope["method"])
        return view, match.kwargs, match.func.limit  # type: ignore[attr-defined]  # as above

    async def _hand_over(
        self, scope: dict[str, Any], receive: Receive, send: Send, headers: dict[bytes, bytes], request_id: bytes
    ) -> None:
        """Has Django's stock handler answer, with a body that was read here: it would spool one of any size, and only
        then ask who sends it.
        """
        if headers.get(b"host") == b"":
            # granian's way of saying that none came, as in HTTP/1.0: Django then goes by the address it listens on.
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"host"]}
        # Django keeps the scope with the request: the records of a failure name the id.
        scope = {**scope, "request_id": request_id.decode("latin-1")}
        is_form = scope["path"].startswith(CONSOLE)
        body = Body(receive, headers, bodies.budgets().forms if is_form else bodies.budgets().control)
        try:
            content = await self._content(scope, headers, body, is_form=is_form)
            await self._otherwise(scope, body.as_read(content), _bearing(request_id, send))
        except Refusal as refusal:
            await _write(errors.answer(refusal), request_id, send, receive)
        finally:
            body.release()

    async def _content(self, scope: dict[str, Any], headers: dict[bytes, bytes], body: Body, *, is_form: bool) -> bytes:
        """What a request outside of the data plane brings. Whoever only reads brings nothing."""
        if not body.is_unread:
            return await body.read(0)
        if scope["method"] in READING:
            return b""
        if is_form:
            # The login is open to all, and the other pages send a stranger there.
            return await body.read(limits.FORM_BYTES)
        await callers.require(headers, self._keys)
        return await body.read(limits.CONTROL_BYTES)

    async def _respond(
        self,
        scope: dict[str, Any],
        receive: Receive,
        headers: dict[bytes, bytes],
        body: Body,
        hold: Hold,
        limit: Limit,
        view: View,
        named: dict[str, Any],
        request_id: bytes,
    ) -> HttpResponse:
        try:
            authorization = headers.get(b"authorization")
            caller = await self._keys.caller(authorization.decode("latin-1") if authorization else None)
            content = b"" if scope["method"] in READING and body.is_unread else await body.read(limit())
            request = DataRequest(scope, headers, content, receive)
            request.caller = caller
            request.hold = hold
            return await view(request, **named)
        except Refusal as refusal:
            return errors.answer(refusal)
        except Gone:
            raise
        except Exception:
            name = request_id.decode("latin-1")
            logger.exception("a request failed", method=scope["method"], path=scope["path"], request_id=name)
            document = errors.refusal_of_status(500, "The broker failed: its log has the details.")
            return HttpResponse(msgspec.json.encode(document), status=500, content_type=errors.PROBLEM_TYPE)


async def _write_page(response: Page, request_id: bytes, send: Send) -> None:
    """Sends a page part by part; each is taken when the one before it has left."""
    headers = [(b"content-type", b"application/json"), (b"x-request-id", request_id)]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    try:
        for part in response.parts():
            async with asyncio.timeout(UNREAD_SECONDS):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            # The server takes the first parts at once: writes come in between.
            await asyncio.sleep(0)
    except TimeoutError:
        logger.warning("an answer is given up: its caller does not read", seconds=UNREAD_SECONDS)
    await send({"type": "http.response.body", "body": b""})


async def _write(response: HttpResponse, request_id: bytes, send: Send, unread: Receive | None = None) -> None:
    """Sends an answer; of a body that is `unread`, some is dropped before the connection is closed."""
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.items()]
    headers.append((b"x-request-id", request_id))
    headers.append((b"content-length", str(len(response.content)).encode()))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    if unread is None:
        await send({"type": "http.response.body", "body": response.content})
        return
    # The server stops reading as soon as the answer is whole.
    await send({"type": "http.response.body", "body": response.content[:-1], "more_body": True})
    await bodies.pass_over(unread)
    await send({"type": "http.response.body", "body": response.content[-1:]})


def _bearing(request_id: bytes, send: Send) -> Send:
    """A `send` that adds the request's id to the answer of Django's stock handler."""

    async def send_with_id(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event["headers"] = [*event["headers"], (b"x-request-id", request_id)]
        await send(event)

    return send_with_id
