"""The requests for Django's own handler: for the control plane, the console, and paths that do not exist."""

import asyncio
import contextlib

from mqbroker.api import answers, bodies, callers, namespaces, request_bytes, responding
from mqbroker.api.answers import Answer
from mqbroker.api.bodies import Body
from mqbroker.rights import KeyRing
from mqbroker.wire import bridge
from mqbroker.wire.arriving import ProcessEnds
from mqbroker.wire.bridge import Application
from mqbroker.wire.exchange import Exchange
from store.db import patience
from store.errors import Refusal, Unauthenticated
from store.process.budget import Budget

# HTTP methods whose views read no body.
READING = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
CONSOLE = "/console/"
# A form of an unknown caller that has not arrived whole within this time counts as incomplete.
FORM_SECONDS = 1.0


class LeftToDjango:
    """Passes requests to Django's handler, after their bodies were read within this process's budgets."""

    def __init__(self, application: Application, keys: KeyRing, budgets: bodies.Budgets) -> None:
        self._application = application
        self._keys = keys
        self._budgets = budgets

    async def serve(self, exchange: Exchange) -> None:
        """Lets Django's handler answer, with the body that was read here.

        Django itself would store a body of any size in a file before it authenticates the caller.
        """
        body = Body(exchange, self._budgets.control)
        content = b""
        try:
            patience.begin(patience.REQUEST_SECONDS, in_all=exchange.method not in READING)
            await self._enter_namespace(exchange)
            # The body of a method that only reads is not read.
            if exchange.is_unread and exchange.method not in READING:
                is_form = exchange.path.startswith(CONSOLE)
                body = Body(exchange, await self._budget_of(exchange, is_form=is_form))
                content = await body.read(request_bytes.FORM_BYTES if is_form else request_bytes.CONTROL_BYTES)
                patience.current().renew()
            found = await bridge.serve(exchange, self._application, content)
            if found is not None:
                # Django's thread is free again before the answer is sent: a caller that reads slowly only occupies
                # memory.
                await responding.send(exchange, Answer(found.content, found.status, found.headers), body)
        except Refusal as refusal:
            responding.write(exchange, answers.refused(refusal))
        finally:
            body.release()

    async def _enter_namespace(self, exchange: Exchange) -> None:
        """Enters the namespace of a request with an API key. The view refuses an unknown key."""
        authorization = exchange.headers.get(b"authorization")
        if authorization is None or not namespaces.is_concerned(exchange):
            return
        with contextlib.suppress(Unauthenticated):
            caller = await self._keys.caller(authorization)
            if caller.namespace is not None or namespaces.HEADER in exchange.headers:
                namespaces.enter(exchange, caller)

    async def _budget_of(self, exchange: Exchange, *, is_form: bool) -> Budget:
        """The budget for the body of a request outside of the data plane, once its caller is known.

        The login is open to all callers, and other pages redirect unknown callers to it.
        """
        if not is_form:
            await callers.require(exchange, self._keys)
            return self._budgets.control
        if await callers.is_signed_in(exchange.headers):
            return self._budgets.forms
        # Many programs send a body directly after its head.
        with contextlib.suppress(TimeoutError, ProcessEnds):
            async with asyncio.timeout(FORM_SECONDS):
                await exchange.some()
        return self._budgets.whole_forms if exchange.is_whole else self._budgets.unfinished_forms
