"""Request bodies: read once the caller is known, up to a limit, before a deadline, within a budget per process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from store import runtime
from store.budget import Budget
from store.errors import MessageTooLarge, Refusal, SystemBusy

# ASGI's dictionaries: what a key holds depends on the type of the event.
Scope = dict[str, Any]
Event = dict[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Scope, Receive, Any], Awaitable[None]]

# Forms of unknown callers may hold this much together: 64 of the largest. They and the control plane have budgets of
# their own, so that neither takes the room of messages.
FORMS_BYTES = 4 * 1024 * 1024
CONTROL_BYTES = 16 * 1024 * 1024
# A refused caller that still sends would see a reset connection instead of its answer, so that this much of its body is
# read and dropped first, chunk by chunk.
PASSED_OVER_BYTES = 8 * 1024 * 1024
PASSED_OVER_SECONDS = 1.0
MAX_PASSING_OVER = 32


class Budgets:
    """The budgets of one process for the bodies of requests: data plane, control plane, forms; and, in callers instead
    of bytes, for refused bodies that are passed over.
    """

    def __init__(self) -> None:
        self.requests = Budget(lambda: settings.REQUESTS_IN_FLIGHT_BYTES)
        self.control = Budget(lambda: CONTROL_BYTES)
        self.forms = Budget(lambda: FORMS_BYTES)
        self.passing_over = Budget(lambda: MAX_PASSING_OVER)


def budgets() -> Budgets:
    """The budgets of this process."""
    return runtime.part(Budgets)


class RequestTimeout(Refusal):
    """The body did not come in time."""

    code = "request_timeout"


class Gone(Exception):
    """The caller hung up before its body was complete."""


class Body:
    """The body of one request. Its bytes count in the budget from their arrival until `release`."""

    def __init__(self, receive: Receive, headers: dict[bytes, bytes], budget: Budget | None = None) -> None:
        self._receive = receive
        self._announced = announced(headers)
        self._budget = budget or budgets().requests
        self._held = 0
        # Whether there may be bytes that were not read.
        self.is_unread = is_announced(headers)

    async def read(self, limit: int) -> bytes:
        """The whole body.

        Raises MessageTooLarge above the limit, before reading a byte where the length is announced; SystemBusy when
        the process holds too many bytes already; RequestTimeout after BODY_READ_SECONDS; Gone.
        """
        if self._announced > limit:
            raise MessageTooLarge(f"The request has {self._announced} bytes, the limit is {limit}.")
        try:
            async with asyncio.timeout(settings.BODY_READ_SECONDS):
                whole = await self._read(limit)
        except TimeoutError as problem:
            raise RequestTimeout(
                f"The body was not complete after {settings.BODY_READ_SECONDS} seconds: nothing was stored, "
                "send the request again."
            ) from problem
        self.is_unread = False
        return whole

    async def _read(self, limit: int) -> bytes:
        event = await self._next()
        if not event.get("more_body"):
            return self._within(event["body"], limit)
        # Not a list of chunks: of a body that comes byte by byte it would have forty times its size.
        whole = bytearray(self._within(event["body"], limit))
        while event.get("more_body"):
            # A task that waits for the next chunk keeps no other one.
            event = {}
            event = await self._next()
            whole += self._within(event["body"], limit)
        return bytes(whole)

    async def _next(self) -> Event:
        event = await self._receive()
        if event["type"] == "http.disconnect":
            raise Gone
        return event

    def _within(self, chunk: bytes, limit: int) -> bytes:
        if self._held + len(chunk) > limit:
            raise MessageTooLarge(f"The request has more than {limit} bytes, the limit.")
        if not self._budget.take(len(chunk), already=self._held):
            raise SystemBusy(
                f"{self._budget.held} bytes of requests are in flight: nothing was stored, try again in a second."
            )
        self._held += len(chunk)
        return chunk

    def as_read(self, content: bytes) -> Receive:
        """A `receive` that returns the content, and afterwards the caller's hang-up."""
        is_given = False

        async def receive() -> Event:
            nonlocal is_given
            if not is_given:
                is_given = True
                return {"type": "http.request", "body": content, "more_body": False}
            if self.is_unread:
                # What would come next are bytes, and no sign of an end.
                await asyncio.get_running_loop().create_future()
            return await self._receive()

        return receive

    def release(self) -> None:
        """Gives the bytes back to the budget."""
        self._budget.give_back(self._held)
        self._held = 0


def announced(headers: dict[bytes, bytes]) -> int:
    """The bytes of the body by its Content-Length; 0 without one."""
    given = headers.get(b"content-length", b"0")
    return int(given) if given.isdigit() else 0


def is_announced(headers: dict[bytes, bytes]) -> bool:
    """Whether a body follows the headers at all."""
    return announced(headers) > 0 or b"transfer-encoding" in headers


async def pass_over(receive: Receive) -> None:
    """Drops what a refused caller still sends, within limits: of bytes, of time, and of callers at a time."""
    passing_over = budgets().passing_over
    if not passing_over.take(1):
        return
    left = PASSED_OVER_BYTES
    try:
        async with asyncio.timeout(PASSED_OVER_SECONDS):
            while left > 0:
                event = await receive()
                if not event.get("more_body"):
                    return
                left -= len(event["body"])
    except TimeoutError:
        return
    finally:
        passing_over.give_back(1)
