"""The handler in front of Django's: answers the data plane without middleware, signals and ORM."""

import asyncio
import re
import secrets
from collections.abc import Iterable
from itertools import count

import structlog

from mqbroker.access import Caller, KeyRing
from mqbroker.api import answers, bodies, callers, limits
from mqbroker.api.answers import Answer, Page
from mqbroker.api.bodies import Body
from mqbroker.api.requests import DataRequest
from mqbroker.api.router import Named, Route, Router, View
from mqbroker.http import bridge
from mqbroker.http import exchange as exchanges
from mqbroker.http.bridge import Application
from mqbroker.http.exchange import Exchange, Gone
from store.commit import waiting, writer
from store.db import pacing, patience
from store.errors import Refusal

logger = structlog.stdlib.get_logger(__name__)

# Methods whose requests have no body that a view reads.
READING = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
CONSOLE = "/console/"
# A caller that reads nothing of its answer for so long is given up: what the answer holds keeps others from reading.
UNREAD_SECONDS = 20
REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class Handler:
    """Serves the paths of the data plane, and leaves every other request to Django's own handler.

    A request goes this way:

    1. `_find`: the path leads to a route, and the method to a view. Without a view Django's handler answers.
    2. The key leads to a caller, which a process looks up once in three seconds; then the body is read, within the
       route's limit, the process's budget and a deadline.
    3. The view decodes the body, calls one function of an app, and returns an Answer. A Refusal becomes one, too.
    4. `_send`: what a consumer that hung up would have received is given back; else the answer leaves with the
       request's id, in parts where its messages are large.

    New work comes here through `mqbroker.http.admission`, which asks `begins` and `is_full`: while too much waits it is
    refused by `refuse`, before its key is looked up and its body decoded.

    Django's way costs some 0.9 ms of CPU per request.
    """

    def __init__(self, routes: Iterable[Route], otherwise: Application) -> None:
        routes = list(routes)
        self._router = Router(routes)
        self._beginning = frozenset(b"/" + route.pattern.encode() for route in routes if route.begins)
        self._otherwise = otherwise
        self._keys = KeyRing()
        self._budgets = bodies.budgets()
        # A request's id is unique by the process that took it and its number there.
        self._process = secrets.token_hex(6).encode()
        self._requests = count()
        # Encoded once: at twice its capacity a process refuses every other request, and needs its time for the rest.
        self._too_many = answers.refused(waiting.too_many(waiting.places()))
        self._too_long = answers.refused(waiting.too_long())

    async def __call__(self, exchange: Exchange) -> None:
        """Answers a request; one whose caller has gone has no answer."""
        patience.seconds.set(patience.REQUEST_SECONDS)
        exchange.request_id = self._id_of(exchange.headers)
        if exchange.refused_as is not None:
            _write(exchange, answers.malformed(exchange.refused_as))
            return
        found = self._find(exchange)
        try:
            if found is None:
                await self._leave(exchange)
            else:
                await self._serve(exchange, *found)
        except Gone:
            return

    def begins(self, exchange: Exchange) -> bool:
        """Whether it stores new messages. An end, an ack and a read may not wait behind those."""
        return exchange.method == "POST" and exchange.target in self._beginning

    def has_room(self) -> bool:
        """Whether new work would be in the next batch."""
        return writer.waiting().has_room

    def is_full(self, waited: float) -> bool:
        """Whether new work is refused, when the first one that has not begun has waited for so many seconds."""
        return waited > waiting.MAX_WAIT_SECONDS or writer.waiting().is_full

    def refusal(self, target: bytes, date: bytes) -> bytes | None:
        """The bytes that refuse a POST; None where it is no new work."""
        if target not in self._beginning:
            return None
        answer = self._busy()
        length = (b"content-length", b"%d" % len(answer.content))
        headers = (*answer.headers, (b"x-request-id", self._next_id()), length)
        return exchanges.head_of(answer.status, date, headers, keep_alive=True) + answer.content

    def refuse(self, exchange: Exchange) -> None:
        """Answers new work while too much waits; its body is dropped, so that its connection is kept."""
        exchange.request_id = self._id_of(exchange.headers)
        exchange.drop()
        _write(exchange, self._busy())

    def _busy(self) -> Answer:
        return self._too_many if writer.waiting().is_full else self._too_long

    def _id_of(self, headers: dict[bytes, bytes]) -> bytes:
        given = headers.get(b"x-request-id")
        if given is not None and REQUEST_ID.fullmatch(given):
            return given
        return self._next_id()

    def _next_id(self) -> bytes:
        return b"%s-%d" % (self._process, next(self._requests))

    def _find(self, exchange: Exchange) -> tuple[Route, View, Named] | None:
        found = self._router.find(exchange.path)
        if found is None:
            return None
        route, named = found
        # HEAD is a GET whose body the server keeps back.
        view = route.views.get("GET" if exchange.method == "HEAD" else exchange.method)
        return None if view is None else (route, view, named)

    async def _serve(self, exchange: Exchange, route: Route, view: View, named: Named) -> None:
        body = Body(exchange, self._budgets.requests)
        request: DataRequest | None = None
        try:
            try:
                caller = await self._caller(exchange)
                content = await self._content_of(exchange, body, route)
                if exchange.is_refused:
                    answer = self._busy()
                else:
                    request = DataRequest(exchange, caller, content)
                    answer = await view(request, **named)
            except Refusal as refusal:
                answer = answers.refused(refusal)
            except Gone:
                raise
            except Exception:
                logger.exception("a request failed", **described(exchange))
                answer = answers.failed()
            await _send(exchange, answer, body)
        finally:
            body.release()
            if request is not None:
                request.close()

    async def _content_of(self, exchange: Exchange, body: Body, route: Route) -> bytes:
        """The body of a request of the data plane; of a refused one only a small one, which keeps its connection."""
        content = body.whole()
        if content is not None:
            return content
        if exchange.method in READING or (exchange.is_refused and not body.is_small()):
            return b""
        return await body.read(route.most_bytes)

    async def _caller(self, exchange: Exchange) -> Caller:
        authorization = exchange.headers.get(b"authorization", b"")
        return self._keys.known(authorization) or await self._keys.caller(authorization)

    async def _leave(self, exchange: Exchange) -> None:
        """Lets Django's handler answer, with a body that was read here: Django would spool one of any size, and only
        then authenticate its caller.
        """
        is_form = exchange.path.startswith(CONSOLE)
        body = Body(exchange, self._budgets.forms if is_form else self._budgets.control)
        try:
            content = await self._content(exchange, body, is_form=is_form)
            await bridge.serve(exchange, self._otherwise, content)
        except Refusal as refusal:
            _write(exchange, answers.refused(refusal))
        finally:
            body.release()

    async def _content(self, exchange: Exchange, body: Body, *, is_form: bool) -> bytes:
        """The body of a request outside of the data plane; that of a method that only reads stays unread."""
        if exchange.is_whole and not exchange.is_unread:
            return b""
        if exchange.method in READING:
            return b""
        if is_form:
            # The login is open to all, and the other pages redirect unknown callers to it.
            return await body.read(limits.FORM_BYTES)
        await callers.require(exchange.headers, self._keys)
        return await body.read(limits.CONTROL_BYTES)


def described(exchange: Exchange) -> dict[str, str]:
    """What a log record of a request holds."""
    name = exchange.request_id.decode("latin-1")
    return {"method": exchange.method, "path": exchange.path, "request_id": name}


async def _send(exchange: Exchange, answer: Answer, body: Body) -> None:
    if answer.give_back is not None:
        # A hang-up that arrived while the answer was encoded becomes visible within two turns of the event loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if await answer.give_back(exchange.gone):
            return
    if isinstance(answer, Page):
        body.release()
        await _write_page(exchange, answer)
    else:
        _write(exchange, answer)


async def _write_page(exchange: Exchange, page: Page) -> None:
    """Sends a page part by part, each once the one before it has left. Small requests run between the parts.

    A caller that hangs up before the last part, or reads nothing for UNREAD_SECONDS, has received no message: half an
    object is no JSON. What it would have received is given back.
    """
    exchange.start(page.status, _headers(exchange, page))
    try:
        await _write_parts(exchange, page)
        return
    except TimeoutError:
        logger.warning("an answer is given up: its caller does not read", seconds=UNREAD_SECONDS)
        exchange.hang_up()
    except Gone:
        pass
    if page.give_back is not None:
        await page.give_back(exchange.gone)


async def _write_parts(exchange: Exchange, page: Page) -> None:
    parts = page.parts()
    while True:
        async with pacing.step():
            part = next(parts, b"")
        if not part:
            exchange.end()
            return
        if page.give_back is not None and exchange.gone.done():
            raise Gone
        async with asyncio.timeout(UNREAD_SECONDS):
            await exchange.send(part)


def _write(exchange: Exchange, answer: Answer) -> None:
    exchange.answer(answer.status, _headers(exchange, answer), answer.content)


def _headers(exchange: Exchange, answer: Answer) -> answers.Headers:
    return (*answer.headers, (b"x-request-id", exchange.request_id))
