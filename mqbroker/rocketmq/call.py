"""A gRPC call: its caller, its deadline, and whether its client is still connected."""

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import structlog

from access.callers import Caller
from mqbroker.api.operations import rest_of
from mqbroker.api.requests import begin_request
from mqbroker.rights import KeyRing
from mqbroker.rocketmq import credentials
from mqbroker.rocketmq.protocol.definition_pb2 import Code
from mqbroker.rocketmq.statuses import Refused
from store.commit import writer
from store.commit.operation import Operation, Pipelined
from store.errors import Refusal, SystemBusy
from store.naming.namespaces import Namespace
from store.process import runtime
from store.process.shares import Shares

logger = structlog.stdlib.get_logger(__name__)
Result = TypeVar("Result")

CLIENT_ID = "x-mq-client-id"
# The maximum length in characters of a client's id; clients' own ids have about 60. The id is stored with everything
# that the client holds.
MAX_CLIENT_ID = 255
# The maximum number of calls at once by callers with a key, including streams and long polls; one key may have five
# eighths. Each takes 40 to 70 kB.
MAX_CALLS = 2_000
# A client: the name of its API key, and the id that the client chose.
Client = tuple[str, str]


class OpenCalls(Shares):
    """The calls of this process between `enter` and `leave`, counted by API key."""

    def __init__(self) -> None:
        super().__init__(MAX_CALLS)


class Call:
    """A call of a RocketMQ client. `enter` identifies the caller; `leave` ends the call."""

    __slots__ = ("_has_entered", "_keys", "caller", "client", "client_id", "deadline", "gone", "metadata", "namespace")

    def __init__(self, metadata: Mapping[str, str | bytes], remaining: float | None, keys: KeyRing) -> None:
        self.metadata = metadata
        # The deadline by time.monotonic(); None for a call without a deadline.
        self.deadline = None if remaining is None else time.monotonic() + remaining
        self._keys = keys
        self._has_entered = False
        self.caller: Caller
        self.client_id = ""
        # The key's name and the client's id, because a caller could send another client's id.
        self.client: Client = ("", "")
        self.namespace: Namespace | None = None
        # Done as soon as the client cancels the call or disconnects, or the deadline is over.
        self.gone: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def enter(self) -> None:
        """Identifies the caller, and counts the call for its API key.

        Raises Unauthenticated, Refused for a client without an id, and SystemBusy if too many calls are open.
        """
        begin_request()
        self.client_id = self.header(CLIENT_ID)
        if not self.client_id:
            raise Refused(Code.CLIENT_ID_REQUIRED, f"The header {CLIENT_ID} is missing: a client names itself by it.")
        if len(self.client_id) > MAX_CLIENT_ID:
            raise Refused(
                Code.BAD_REQUEST,
                f"The header {CLIENT_ID} has {len(self.client_id)} characters, the limit is {MAX_CLIENT_ID}.",
            )
        self.caller = await self.caller_now()
        self.client = (self.caller.name, self.client_id)
        calls = runtime.control(OpenCalls)
        self._has_entered = calls.take(self.caller.name)
        if not self._has_entered:
            raise SystemBusy(
                f"Too many calls are open: {MAX_CALLS} of all keys, {calls.most_of_key} of one key, including "
                "streams and long polls. End some calls, or start another process for RocketMQ's clients."
            )

    def leave(self) -> None:
        """Ends the call: it no longer counts among the running calls."""
        if self._has_entered:
            self._has_entered = False
            runtime.control(OpenCalls).give_back(self.client[0])

    async def caller_now(self) -> Caller:
        """The caller with its present rights: while a call waits, its API key may be changed, revoked or expire.

        Raises Unauthenticated.
        """
        self.caller = caller = await credentials.caller_of(
            self.header(credentials.AUTHORIZATION), self.header(credentials.DATE_TIME), self._keys
        )
        self.namespace = None if caller.namespace is None else Namespace(caller.namespace, is_bound=True)
        return caller

    def header(self, name: str) -> str:
        """The text of a header by its lower-case name; empty if it is missing."""
        value = self.metadata.get(name, "")
        return value if isinstance(value, str) else ""

    def whole(self, name: str) -> str:
        """The whole name, with namespace, of a topic or group that the client names."""
        return name if self.namespace is None else self.namespace.wrap(name)

    def shown(self, name: str) -> str:
        """The name of a topic or group as the client knows it, without its namespace."""
        return name if self.namespace is None else self.namespace.show(name)

    def seconds_left(self) -> float:
        """The number of seconds until the deadline; infinite for a call without a deadline."""
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()

    def end(self) -> None:
        """Notes that the client no longer waits for this call."""
        if not self.gone.done():
            self.gone.set_result(None)

    async def run(self, operation: Operation[Result]) -> Result:
        """Writes an operation like `writer.run`; a client that disconnects does not interrupt the write."""
        is_ready = operation.ready()
        if is_ready and isinstance(operation, Pipelined) and not (operation.ordered or operation.overtakes):
            writer.hand_in(operation, at_once=True)
            # The operation is written even if its call is cancelled.
            if await operation.future is None:
                await kept(writer.finish(operation))
        else:
            await kept(rest_of(operation, is_ready=is_ready))
        assert operation.result is not None
        return operation.result


class Kept:
    """Tasks that continue when their call is cancelled."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()

    async def finish(self, seconds: float) -> None:
        """Waits for the tasks, at most `seconds`: afterwards the connections that they need are closed."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=seconds)


async def kept(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs work to its end even if the call is cancelled, so that its changes are complete or not made at all."""
    task = begun(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        begun(_to_its_end(task))
        raise


async def _to_its_end(task: asyncio.Task[Any]) -> None:
    """Waits for the work of a cancelled call. A refusal is dropped, because no client waits for it."""
    try:
        await task
    except Refusal:
        return
    except Exception:
        logger.exception("a call failed after its client had gone")


def begun(work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    """Starts work that runs to its end, even if the caller does not await the work."""
    tasks = runtime.control(Kept).tasks

    async def whole() -> Result:
        try:
            return await work
        finally:
            tasks.discard(task)

    task: asyncio.Task[Result] = asyncio.create_task(whole())
    tasks.add(task)
    return task
