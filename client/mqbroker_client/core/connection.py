"""One broker, reached over HTTP by many threads: time limits, and retries that repeat nothing."""

import copy
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, Unpack

from mqbroker_client.core import calls, environment, errors, requests, tracing
from mqbroker_client.core.calls import Call, Result, hooked, path
from mqbroker_client.core.coalescing import Lane
from mqbroker_client.core.compression import DEFAULT, Compression
from mqbroker_client.core.documents import Document
from mqbroker_client.core.hooks import Hook
from mqbroker_client.core.later import LATER_SECONDS, Later
from mqbroker_client.core.parts import Part, taken
from mqbroker_client.core.pool import FAILURES, ConnectionPool
from mqbroker_client.core.requests import VERSION, Answer, Options, OwnRequest, Request, Requests
from mqbroker_client.core.retries import DEFAULT_RETRY, PASSING, Retry, Tries

log = logging.getLogger(__name__)

__all__ = ["VERSION", "Broker", "Document", "Retry", "path"]


class Broker:
    """Where the broker is and who is asking. Safe to share between threads, and to make before a fork.

    A request is repeated after a broken connection, after 503 and after 429, never after another 4xx. That is safe
    because everything that is stored carries an id made here: the same request sent twice stores one thing.

    Of several addresses one is used until it cannot be reached; then the next one.

    Calls of several threads that come while another one is under way go together, in one request. A thread that finds
    none under way sends its own at once. `coalescing=False` sends each call by itself.

    In a `namespace` all names are bare: `orders` is the broker's `<namespace>%orders`. A key that is bound to one needs
    no such option.

    Bodies from 4 KiB on are compressed (`compression`), and unpacked where a message is read.

    `hooks` are around each call, in their order, behind OpenTelemetry's where that is installed.
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
        hooks: Sequence[Hook] = (),
        compression: Compression | None = DEFAULT,
        namespace: str | None = None,
    ) -> None:
        self.urls = requests.addresses(url)
        self.connect_seconds = connect_seconds
        self.timeout_seconds = timeout_seconds
        self.retry = retry
        #: Around each call, and around what handles a message or answers a check: `mqbroker_client.core.hooks`.
        self.hooks = (*tracing.HOOKS, *hooks)
        self.compression = compression
        self._requests = Requests(api_key, namespace)
        self._pools = [ConnectionPool(one, connections) for one in self.urls]
        self._used = 0
        self._lane = Lane(self._together) if coalescing else None
        # Alone where the program has hooks: one of them may forbid a call, and not the others.
        self._later = Later(self.do, None if hooks else self.do_all)

    @classmethod
    def from_env(cls, **options: Unpack[Options]) -> Self:
        """The broker of MQBROKER_URL, which may be several addresses with commas, and MQBROKER_API_KEY.

        MQBROKER_NAMESPACE is the namespace, where it is set.

        `options` are those of the constructor. Raises ValueError where a variable is missing.
        """
        return cls(*environment.from_environment(), **environment.options_of(options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The address in use."""
        return self.urls[self._used]

    def close(self, *, timeout_seconds: float = LATER_SECONDS) -> None:
        """Send what `wait=False` left, within the time, and close the idle connections."""
        self._later.flush(timeout_seconds)
        for pool in self._pools:
            pool.close()

    def apart(self) -> "Broker":
        """The same broker and key over a connection of its own, so that `hang_up` ends only what is asked there."""
        apart = copy.copy(self)
        apart._pools = [ConnectionPool(one, 1) for one in self.urls]
        apart._lane = None
        return apart

    def hang_up(self) -> None:
        """End the requests that other threads have under way, long polls too: each raises `Unreachable`."""
        for pool in self._pools:
            pool.hang_up()

    def waiting(self) -> int:
        """Calls that wait to go together, while another one is under way."""
        return self._lane.waiting() if self._lane else 0

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        retry: Retry | None = None,
        wait_seconds: float = 0,
    ) -> Document:
        """The broker's answer to one request, or the `BrokerError` that says why there is none.

        `wait_seconds` is how long the broker itself may hold the request (long polling); it comes on top of the limits.
        """
        return self.do(calls.call(method, path, body, calls.same, query=query, wait_seconds=wait_seconds), retry=retry)

    def do(self, call: Call[Result], *, retry: Retry | None = None) -> Result:
        """The result of a call, alone or together with those of other threads. Its repetitions go alone."""
        if call.context is None or not self.hooks:
            return self._do(call, retry)
        with hooked(self.hooks, [call]) as answered:
            [result] = answered([self._do(call, retry)])
        return result

    def _do(self, call: Call[Result], retry: Retry | None) -> Result:
        tries = Tries(retry or self.retry, timeout_seconds=self.timeout_seconds, wait_seconds=call.wait_seconds)
        alone = partial(self._alone, call, OwnRequest(self._requests, call))
        lane = self._lane if call.operation else None
        while True:
            try:
                seconds = tries.begin()
                return lane.ask(call, seconds, alone) if lane else alone(seconds)
            except PASSING as error:
                pause = tries.pause_after(error, call.what)
            lane = None
            time.sleep(pause)

    def do_all(self, calls: Sequence[Call[Result]], *, retry: Retry | None = None) -> list[Result | errors.BrokerError]:
        """The result or the error of each call. They go in as few requests as their number and size allow.

        Raises the error of a request that failed as a whole.
        """
        waiting = deque(Part(call) for call in calls)
        results: list[Result | errors.BrokerError] = []
        while waiting:
            results += self._do_together([each.call for each in taken(waiting)], retry or self.retry)
        return results

    def do_later(self, call: Call[Any]) -> None:
        """Send a call in the background, where a failure is only logged, and counted in `lost`."""
        self._later.add(call)

    @property
    def lost(self) -> int:
        """How many calls of the background were not sent, or refused."""
        return self._later.lost

    def _do_together(self, calls: Sequence[Call[Result]], retry: Retry) -> list[Result | errors.BrokerError]:
        tries = Tries(retry, timeout_seconds=self.timeout_seconds)
        with hooked(self.hooks, calls) as answered:
            while True:
                try:
                    return answered(self._together(calls, tries.begin()))
                except PASSING as error:
                    time.sleep(tries.pause_after(error, "POST /v1/bulk"))

    def _alone(self, call: Call[Result], own: OwnRequest, seconds: float) -> Result:
        request = own.get()
        return requests.result_of(call, requests.document_of(self.url, request, self._once(request, seconds)))

    def _together(self, calls: Sequence[Call[Result]], seconds: float) -> list[Result | errors.BrokerError]:
        request = self._requests.bulk(calls)
        document = requests.document_of(self.url, request, self._once(request, seconds))
        return requests.results_of(request, document, calls)

    def _once(self, request: Request, seconds: float) -> Answer:
        used = self._used
        pool = self._pools[used]
        try:
            answer = pool.request(request, connect_seconds=self.connect_seconds, seconds=seconds)
        except FAILURES as error:
            self._move_on(used)
            raise requests.unreachable(self.urls[used], request, error) from error
        try:
            requests.require_own(self.urls[used], request, answer)
        except errors.AnswerOfAnotherRequest:
            # Whatever mixed the answers up, the next one on this connection would be wrong as well.
            pool.renew()
            raise
        if len(self.urls) > 1 and requests.is_of_another(answer):
            self._move_on(used)
            raise requests.unreachable(self.urls[used], request, requests.of_another(self.urls[used], answer))
        return answer

    def _move_on(self, used: int) -> None:
        """To the next address. Threads that failed together move on by one address together."""
        if self._used == used:
            self._used = (used + 1) % len(self._pools)
