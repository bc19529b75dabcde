"""One broker, reached over HTTP by the tasks of an event loop."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Self, Unpack
from weakref import WeakKeyDictionary, WeakSet

import aiohttp
from yarl import URL

from mqbroker_client.aio.coalescing import AsyncLane
from mqbroker_client.aio.hooks import AsyncHook, entered
from mqbroker_client.core import calls, environment, errors, forks, requests, tracing
from mqbroker_client.core.calls import Call, Result
from mqbroker_client.core.compression import DEFAULT, Compression
from mqbroker_client.core.documents import Document
from mqbroker_client.core.later import MOST_WAITING
from mqbroker_client.core.requests import Answer, Options, OwnRequest, Request, Requests
from mqbroker_client.core.retries import DEFAULT_RETRY, PASSING, Retry, Tries

# Sessions of a parent process, kept alive: a collected session would remove its sockets from the parent's epoll.
_of_parent: list[object] = []


class Line:
    """The connections of one event loop, and their calls.

    After `leave` the last running call closes the connections, because `close` may be called while tasks still send.
    """

    def __init__(self, session: aiohttp.ClientSession, lane: AsyncLane | None, *, is_left: bool) -> None:
        self.session = session
        self.lane = lane
        self.is_left = is_left
        self._calls = 0
        #: Tasks that send ends in the background.
        self.later: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._calls += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._calls -= 1
        if self.is_left and not self._calls:
            await self.session.close()

    async def leave(self) -> None:
        """Closes the connections now, or when the last running call has ended."""
        async with self:
            self.is_left = True


class AsyncBroker:
    """The address of the broker and the caller's key, for tasks. `Broker` explains the arguments.

    It may be created outside of an event loop and before a fork. Each event loop that uses it has its own connections;
    `close` closes the running loop's connections. Connections for calls after `close` are closed with the last call.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        api_key: str,
        *,
        connect_seconds: float = 2.0,
        timeout_seconds: float = 10.0,
        retry: Retry = DEFAULT_RETRY,
        connections: int = 64,
        coalescing: bool = True,
        hooks: Sequence[AsyncHook] = (),
        compression: Compression | None = DEFAULT,
        namespace: str | None = None,
    ) -> None:
        self.urls = requests.addresses(url)
        self.connect_seconds = connect_seconds
        self.timeout_seconds = timeout_seconds
        self.retry = retry
        #: Hooks that run around each call, each handler and each check: `mqbroker_client.aio.hooks`.
        self.hooks: Sequence[AsyncHook] = (*tracing.HOOKS, *hooks)
        self.connections = connections
        self.coalescing = coalescing
        self.compression = compression
        self._requests = Requests(api_key, namespace)
        self._used = 0
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, Line] = WeakKeyDictionary()
        #: The number of background calls that were not sent, or were refused.
        self.lost = 0
        #: The event loops in which this broker was closed.
        self._closed: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        forks.remember(self)

    @classmethod
    def from_env(cls, **options: Unpack[Options]) -> Self:
        """A broker from the variables MQBROKER_URL and MQBROKER_API_KEY. Takes the options of `Broker.from_env`."""
        return cls(*environment.from_environment(), **environment.options_of(options))

    async def __aenter__(self) -> Self:
        self._closed.discard(asyncio.get_running_loop())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The address to which requests are sent now: one of `urls`."""
        return self.urls[self._used]

    async def close(self, *, timeout_seconds: float = 3.0) -> None:
        """Send the calls that `wait=False` has left, within `timeout_seconds`, and close this event loop's connections.

        If tasks still send, their last call closes the connections.
        """
        loop = asyncio.get_running_loop()
        self._closed.add(loop)
        line = self._lines.get(loop)
        if line is None:
            return
        if line.later:
            await asyncio.wait(line.later, timeout=timeout_seconds)
        await line.leave()

    def leave_to_parent(self) -> None:
        """Drops the parent's connections in a forked child, and starts afresh."""
        _of_parent.extend(self._lines.values())
        self._lines = WeakKeyDictionary()

    def waiting(self) -> int:
        """The number of calls of the running event loop that wait to be sent together."""
        line = self._lines.get(asyncio.get_running_loop())
        return line.lane.waiting() if line and line.lane else 0

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        retry: Retry | None = None,
        wait_seconds: float = 0,
    ) -> Document:
        """Sends one request and returns the JSON of the answer; with the arguments and errors of `Broker.call`."""
        return await self.do(
            calls.call(method, path, body, calls.same, query=query, wait_seconds=wait_seconds), retry=retry
        )

    async def do(self, call: Call[Result], *, retry: Retry | None = None) -> Result:
        """The result of a call, which is sent alone or together with other tasks' calls. Repetitions are sent alone."""
        if call.context is None or not self.hooks:
            return await self._do(call, retry)
        async with entered(self.hooks, call.context):
            call.traceparent = call.context.traceparent
            call.context.result = result = await self._do(call, retry)
        return result

    async def _do(self, call: Call[Result], retry: Retry | None) -> Result:
        tries = Tries(retry or self.retry, timeout_seconds=self.timeout_seconds, wait_seconds=call.wait_seconds)
        async with self._line() as line:
            return await self._repeated(line, call, tries)

    async def _repeated(self, line: Line, call: Call[Result], tries: Tries) -> Result:
        alone = partial(self._alone, line.session, call, OwnRequest(self._requests, call))
        lane = line.lane if call.operation else None
        while True:
            try:
                seconds = tries.begin()
                return await (lane.ask(call, seconds, alone) if lane else alone(seconds))
            except PASSING as error:
                pause = tries.pause_after(error, call.what)
            lane = None
            await asyncio.sleep(pause)

    def do_later(self, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run `work` in the background; returns False if 10,000 works wait already. `close` waits for these works."""
        later = self._line().later
        if len(later) >= MOST_WAITING:
            return False

        async def run() -> None:
            try:
                await work()
            finally:
                later.discard(task)

        task = asyncio.get_running_loop().create_task(run())
        later.add(task)
        return True

    def _line(self) -> Line:
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None or line.session.closed:
            connector = aiohttp.TCPConnector(limit=self.connections)
            plain = ("Accept-Encoding",)  # No compressed answers are requested, because they would not be decompressed.
            session = aiohttp.ClientSession(connector=connector, auto_decompress=False, skip_auto_headers=plain)
            lane = AsyncLane(partial(self._together, session)) if self.coalescing else None
            line = self._lines[loop] = Line(session, lane, is_left=loop in self._closed)
        return line

    async def _alone(
        self, session: aiohttp.ClientSession, call: Call[Result], own: OwnRequest, seconds: float
    ) -> Result:
        request = own.get()
        document = requests.document_of(self.url, request, await self._once(session, request, seconds))
        return requests.result_of(call, document)

    async def _together(
        self, session: aiohttp.ClientSession, calls: Sequence[Call[Result]], seconds: float
    ) -> Sequence[Result | errors.BrokerError]:
        request = self._requests.bulk(calls)
        document = requests.document_of(self.url, request, await self._once(session, request, seconds))
        return requests.results_of(request, document, calls)

    async def _once(self, session: aiohttp.ClientSession, request: Request, seconds: float) -> Answer:
        used = self._used
        url = self.urls[used]
        try:
            answer = await self._exchange(session, url, request, seconds)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._move_on(used)
            raise requests.unreachable(url, request, error) from error
        requests.require_own(url, request, answer)
        if len(self.urls) > 1 and requests.is_of_another(answer):
            self._move_on(used)
            raise requests.unreachable(url, request, requests.of_another(url, answer))
        return answer

    def _move_on(self, used: int) -> None:
        """Move on to the next address. Tasks that failed at the same address move on by one address only."""
        if self._used == used:
            self._used = (used + 1) % len(self.urls)

    async def _exchange(self, session: aiohttp.ClientSession, url: str, request: Request, seconds: float) -> Answer:
        limits = aiohttp.ClientTimeout(total=seconds, sock_connect=min(self.connect_seconds, seconds))
        async with session.request(
            request.method,
            URL(url + request.target, encoded=True),
            data=request.content,
            headers=request.headers,
            timeout=limits,
            allow_redirects=False,
        ) as response:
            if requests.is_own(request, response.headers):
                return Answer(response.status, response.headers, await response.read())
            # This is the answer to another request, so the next answer on this connection would be wrong, too.
            response.close()
            return Answer(response.status, response.headers, b"")
