"""Request bodies: read after the caller is authenticated, with a size limit, a deadline, and a byte
budget per process.
"""

import asyncio
import io

from django.conf import settings

from mqbroker.api import codings
from mqbroker.wire.arriving import ProcessEnds
from mqbroker.wire.exchange import Exchange
from store.errors import MessageTooLarge, Refusal, SystemBusy
from store.process import runtime
from store.process.budget import Budget

# The budget of forms: 64 of the largest size. Forms and the control plane have separate budgets, so that they take no
# room from messages. Forms of unknown callers have two further budgets, so that they take no room from signed-in
# operators, and incomplete forms take no room from an operator who signs in.
FORMS_BYTES = 4 * 1024 * 1024
CONTROL_BYTES = 16 * 1024 * 1024
# No route has a lower limit, so a body of this size that has arrived with its head needs no other check.
WHOLE_BYTES = 64 * 1024


class Budgets:
    """The byte budgets of one process for request bodies: of the data plane, the control plane, and forms.

    Forms have three budgets: for signed-in users, for unknown callers whose form arrived completely at once, and for
    other unknown callers.
    """

    def __init__(self) -> None:
        self.requests = Budget(settings.REQUESTS_IN_FLIGHT_BYTES)
        self.control = Budget(CONTROL_BYTES)
        self.forms = Budget(FORMS_BYTES)
        self.whole_forms = Budget(FORMS_BYTES)
        self.unfinished_forms = Budget(FORMS_BYTES)


def budgets() -> Budgets:
    """The budgets of this process."""
    return runtime.control(Budgets)


def take(budget: Budget, size: int, already: int = 0) -> None:
    """Takes bytes of a budget for a request that holds `already` bytes. Raises SystemBusy if the budget is used up."""
    if not budget.take(size, already):
        raise in_flight(budget)


def in_flight(budget: Budget) -> SystemBusy:
    """The refusal of a request because the budget of request bodies is used up."""
    return SystemBusy(
        f"The bodies of requests in progress already fill {budget.held} bytes of memory: nothing was stored, "
        "try again in a second."
    )


class RequestTimeout(Refusal):
    """The body did not arrive in time."""

    code = "request_timeout"


class Body:
    """The body of one request. Its bytes count in the budget from their arrival until `release`."""

    __slots__ = ("_budget", "_coding", "_exchange", "_held")

    def __init__(self, exchange: Exchange, budget: Budget) -> None:
        self._exchange = exchange
        self._budget = budget
        self._coding = codings.of(exchange.headers)
        self._held = 0

    def whole(self) -> bytes | None:
        """The body, if it is small, uncompressed and has arrived completely, as almost all have; otherwise None: call
        `read`.

        Raises SystemBusy if the process already holds too many bytes.
        """
        if self._coding is not None or (content := self._exchange.whole(WHOLE_BYTES)) is None:
            return None
        # The bytes are counted here without `_hold`, whose calls cost each small request 0.3 µs.
        size = len(content)
        if not self._budget.take(size):
            raise in_flight(self._budget)
        self._held = size
        return content

    def is_small(self) -> bool:
        """Whether the announced length is so small that the body may arrive together with its head."""
        return 0 < announced(self._exchange.headers) <= WHOLE_BYTES

    async def read(self, limit: int) -> bytes:
        """The whole body, decompressed if it has a content coding.

        Raises MessageTooLarge above the limit, before any byte is read if the length is announced; SystemBusy if the
        process already holds too many bytes or is stopping; RequestTimeout after BODY_READ_SECONDS; Gone.
        """
        size = announced(self._exchange.headers)
        if size > limit:
            raise MessageTooLarge(f"The request has {size} bytes, the limit is {limit}.")
        try:
            async with asyncio.timeout(settings.BODY_READ_SECONDS):
                content = await self._read(limit)
        except TimeoutError as problem:
            raise RequestTimeout(
                f"The body did not arrive completely within {settings.BODY_READ_SECONDS} seconds: nothing was "
                "stored, send the request again."
            ) from problem
        except ProcessEnds as problem:
            raise SystemBusy(
                "This process of the broker is stopping and had not received the whole body: nothing was "
                "stored, send the request again."
            ) from problem
        if self._coding is not None:
            content = await codings.decoded(self._coding, content, limit, self._hold)
        return content

    async def _read(self, limit: int) -> bytes:
        # A list of chunks would take forty times the size if a body arrives byte by byte. `getvalue` returns no copy,
        # which would take 8 ms for 32 MiB.
        whole = io.BytesIO()
        while chunk := await self._exchange.chunk():
            whole.write(self._within(chunk, limit))
            # A task that waits for the next chunk must not keep the previous chunk in memory.
            del chunk
        return whole.getvalue()

    def _within(self, chunk: bytes, limit: int) -> bytes:
        if self._held + len(chunk) > limit:
            raise MessageTooLarge(f"The request has more than {limit} bytes, the limit.")
        self._hold(len(chunk))
        return chunk

    def _hold(self, size: int) -> None:
        take(self._budget, size, self._held)
        self._held += size

    def release(self) -> None:
        """Returns the bytes to the budget."""
        if self._held:
            self._budget.give_back(self._held)
            self._held = 0


def announced(headers: dict[bytes, bytes]) -> int:
    """The length of the body by Content-Length, in bytes; 0 without this header."""
    given = headers.get(b"content-length", b"0")
    return int(given) if given.isdigit() else 0
