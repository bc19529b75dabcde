"""Serves the data plane in front of Django's handler, without middleware, signals and ORM."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from time import monotonic
from typing import Any, NamedTuple

from access.callers import Caller
from console.monitoring.requests import Calls, Tally
from mqbroker import errors
from mqbroker.api import answers, bodies, responding
from mqbroker.api.bodies import Body
from mqbroker.api.left_to_django import READING, LeftToDjango
from mqbroker.api.new_work import NewWork
from mqbroker.api.operations import Call, rest_of
from mqbroker.api.requests import DataRequest, begin_request, entered
from mqbroker.api.router import Route, Router, View
from mqbroker.rights import KeyRing
from mqbroker.wire.arriving import Gone
from mqbroker.wire.bridge import Application
from mqbroker.wire.exchange import Exchange
from store.commit import writer
from store.commit.operation import Operation
from store.process import runtime


class Found(NamedTuple):
    """The result of routing: the route, its view, the counter of its answers, and the path's parameters."""

    route: Route
    view: View
    tally: Tally
    named: Mapping[str, Any]


class Handler(NewWork):
    """Serves the paths of the data plane, and passes every other request to Django's own handler.

    A request goes this way:

    1. `_find`: the path, in its plain form, leads to a route, and the method to a view. Without a view, static files
       are tried (`files`), then Django's handler.
    2. The key leads to a caller, which a process looks up once in three seconds; then the body is read, within the
       route's limit, the process's budget and a deadline.
    3. Almost all operations of the message path are added to their batch at once, and answered when it ends. Otherwise
       a task runs the view, which decodes the body, calls one function of an app, and returns an Answer. A Refusal also
       becomes an Answer.
    4. `responding.send`: if the consumer hung up, its messages are returned to the group; otherwise the answer is sent
       with the request's id, in parts if its messages are large, and is counted.

    New work comes here through `mqbroker.wire.admission`, which asks `begins` and `is_full`: while too much waits it is
    refused by `refuse`, before its key is looked up and its body decoded. Django's way costs about 0.9 ms of CPU.
    """

    def __init__(self, routes: Iterable[Route], files: Callable[[Exchange], bool], otherwise: Application) -> None:
        routes = list(routes)
        self._other, self._tallies = runtime.control(Calls).tallies(routes)
        self._router = Router(routes)
        # The routes of plain paths without parameters that were found before.
        self._fixed = {
            (method, b"/" + route.pattern.encode()): Found(route, view, self._tallies[view], {})
            for route in routes
            if not route.parameters
            for method, view in route.views.items()
        }
        super().__init__(routes)
        self._files = files
        self._keys = runtime.control(KeyRing)
        self._budgets = bodies.budgets()
        self._django = LeftToDjango(otherwise, self._keys, self._budgets)
        self._tasks: set[asyncio.Task[None] | None] = set()

    def __call__(self, exchange: Exchange) -> Awaitable[None] | None:
        """Answers a request, unless its caller has gone. Returns None if no task is needed."""
        exchange.request_id = self.id_of(exchange.headers)
        exchange.began = monotonic()
        found = self._fixed.get((exchange.method, exchange.target))
        if found is None or b"content-encoding" in exchange.headers:
            if (refused := answers.of_form(exchange)) is not None:
                responding.write(exchange, refused)
                return None
            found = found or self._find(exchange)
            if found is None and self._files(exchange):
                return None
        exchange.tally = self._other if found is None else found.tally
        if found is not None and isinstance(found.view, Call) and exchange.is_whole:
            caller = self._keys.known(exchange.headers.get(b"authorization", b""))
            if caller is not None:
                return self._begin(exchange, found, found.view, caller)
        return self._answer(exchange, found)

    def _begin(self, exchange: Exchange, found: Found, call: Call[Any, Any], caller: Caller) -> Awaitable[None] | None:
        """Adds an operation to its batch, whose end answers it. If it must wait, returns a coroutine of the rest."""
        body = Body(exchange, self._budgets.requests)
        try:
            content = body.whole()
            if content is None:
                return self._answer(exchange, found, body)
            request, named = entered(exchange, caller, content, self._keys, found.named)
            operation = call.operation(request, **named)
            is_ready = operation.ready()
            if not is_ready or operation.ordered:
                # Ordered operations continue in tasks: if an operation is left out of its batch, later operations wait
                # for it.
                return self._go_on(exchange, call, operation, body, rest_of(operation, is_ready=is_ready))
            writer.hand_in(operation, partial(self._settled, exchange, call, operation, body), at_once=True)
        except Exception as problem:  # noqa: BLE001  # the problem is answered, and a failure logged
            return responding.end(exchange, answers.of_problem(problem, exchange), body)
        return None

    def _settled(
        self, exchange: Exchange, call: Call[Any, Any], operation: Operation[Any], body: Body, problem: Exception | None
    ) -> None:
        """Answers an operation whose batch has ended. An operation that was left out is first written stepwise."""
        left: Coroutine[Any, Any, None] | None
        if problem is None and operation.result is None:
            left = self._go_on(exchange, call, operation, body, writer.finish(operation))
        else:
            left = _answered(exchange, call, operation, body, problem)
        if left is not None:
            self._tasks.add(asyncio.create_task(self._kept(left)))

    async def _go_on(
        self,
        exchange: Exchange,
        call: Call[Any, Any],
        operation: Operation[Any],
        body: Body,
        rest: Coroutine[Any, Any, object],
    ) -> None:
        """Answers an operation after the coroutine of its remaining steps."""
        begin_request()
        problem: Exception | None = None
        try:
            await rest
            assert operation.result is not None
        except Exception as raised:  # noqa: BLE001  # the problem is answered like any other
            problem = errors.of_request(raised)
        left = _answered(exchange, call, operation, body, problem)
        if left is not None:
            # Awaited, because a connection is cut if its request was served without an answer.
            await left

    async def _kept(self, serving: Awaitable[None]) -> None:
        """Serves a request in a task, then drops the reference that kept the task alive."""
        try:
            await serving
        finally:
            self._tasks.discard(asyncio.current_task())

    async def _answer(
        self, exchange: Exchange, found: Found | None, body: Body | None = None, content: bytes | None = None
    ) -> None:
        begin_request()
        try:
            if found is None:
                await self._django.serve(exchange)
            else:
                await self._serve(exchange, found, body or Body(exchange, self._budgets.requests), content)
        except Gone:
            return

    def _find(self, exchange: Exchange) -> Found | None:
        found = self._router.find(exchange.path)
        if found is None:
            return None
        route, named = found
        # HEAD is served as a GET whose content is not sent.
        view = route.views.get("GET" if exchange.method == "HEAD" else exchange.method)
        return None if view is None else Found(route, view, self._tallies[view], named)

    async def _serve(self, exchange: Exchange, found: Found, body: Body, content: bytes | None) -> None:
        route = found.route
        request: DataRequest | None = None
        try:
            try:
                caller = await self._caller(exchange)
                if content is None:
                    content = await self._content_of(exchange, body, route, caller)
                if exchange.is_refused:
                    answer = self.busy()
                else:
                    request, named = entered(exchange, caller, content, self._keys, found.named)
                    answer = await found.view(request, **named)
            except Gone:
                raise
            except Exception as problem:  # noqa: BLE001  # the problem is answered, and a failure logged
                answer = answers.of_problem(errors.of_request(problem), exchange)
            await responding.send(exchange, answer, body)
        finally:
            body.release()
            if request is not None:
                request.close()

    async def _content_of(self, exchange: Exchange, body: Body, route: Route, caller: Caller) -> bytes:
        """Reads the body of a request. For a refused caller, only a small body, to keep the connection."""
        content = body.whole()
        if content is not None:
            return content
        if exchange.method in READING or (exchange.is_refused and not body.is_small()):
            return b""
        # The body of a caller without the right for this call must not take bytes that bodies of other callers need.
        caller.require_any(*route.verbs)
        return await body.read(route.most_bytes)

    async def _caller(self, exchange: Exchange) -> Caller:
        authorization = exchange.headers.get(b"authorization", b"")
        return self._keys.known(authorization) or await self._keys.caller(authorization)


def _answered(
    exchange: Exchange, call: Call[Any, Any], operation: Operation[Any], body: Body, problem: Exception | None
) -> Coroutine[Any, Any, None] | None:
    """Answers a request with its operation's result or problem. For a large answer returns a coroutine."""
    try:
        if problem is not None:
            raise problem
        answer = call.answer(operation)
    except Exception as raised:  # noqa: BLE001  # the problem is answered, and a failure logged
        answer = answers.of_problem(raised, exchange)
    return responding.end(exchange, answer, body)
