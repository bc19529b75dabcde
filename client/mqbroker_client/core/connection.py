"""Calls one broker over HTTP from many threads, with time limits and with retries that never store twice."""

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
    """A broker's address and the caller's API key. Safe to share between threads, and to make before a fork.

    A request is repeated after a broken connection, after 503 and after 429, but not after another 4xx. Repeating is
    safe because the client makes an id for everything that is stored: a request that is sent twice stores one thing.

    Of several addresses, one is used until it cannot be reached, then the next one.

    Calls of several threads that arrive while a request is running are sent together in the next request. A thread that
    finds no running request sends its call at once. With `coalescing=False` each call is sent alone.

    With a `namespace` all names are bare: `orders` means the broker's `<namespace>%orders`. A key that is bound to a
    namespace does not need this option.

    Bodies of 4 KiB and more are compressed (`compression`), and decompressed when a message is read.

    `hooks` run around each call, in their order, after OpenTelemetry's hook if that is installed.
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
        #: Hooks that run around each call, each handler and each check: `mqbroker_client.core.hooks`.
        self.hooks = (*tracing.HOOKS, *hooks)
        self.compression = compression
        self._requests = Requests(api_key, namespace)
        self._pools = [ConnectionPool(one, connections) for one in self.urls]
        self._used = 0
        self._lane = Lane(self._together) if coalescing else None
        # With hooks each call is sent alone, because a hook may forbid one call and allow the others.
        self._later = Later(self.do, None if hooks else self.do_all)

    @classmethod
    def from_env(cls, **options: Unpack[Options]) -> Self:
        """A Broker from the environment: MQBROKER_URL, one address or several with commas between them, and
        MQBROKER_API_KEY.

        MQBROKER_NAMESPACE is the namespace, if it is set. `options` are the options of the constructor. Raises
        ValueError if a variable is missing.
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
        """Sends the calls that `wait=False` has left, within the time limit, and closes idle connections."""
        self._later.flush(timeout_seconds)
        for pool in self._pools:
            pool.close()

    def apart(self) -> "Broker":
        """A second Broker with the same address and key but its own connection, so that its `hang_up` ends only its own
        requests.
        """
        apart = copy.copy(self)
        apart._pools = [ConnectionPool(one, 1) for one in self.urls]
        apart._lane = None
        return apart

    def hang_up(self) -> None:
        """Ends the running requests of other threads, including long polls: each of them raises `Unreachable`."""
        for pool in self._pools:
            pool.hang_up()

    def waiting(self) -> int:
        """The number of calls that wait to be sent together after the running request."""
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
        """The broker's answer to one request. Raises a `BrokerError` with the reason for a failure.

        `wait_seconds` is how long the broker itself may hold the request (long polling); it is added to the time
        limits.
        """
        return self.do(calls.call(method, path, body, calls.same, query=query, wait_seconds=wait_seconds), retry=retry)

    def do(self, call: Call[Result], *, retry: Retry | None = None) -> Result:
        """The result of a call, sent alone or together with calls of other threads. A repetition is sent alone."""
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
        """The result or the error of each call. The calls are sent in as few requests as their number and size allow.

        Raises the error of a request that failed as a whole.
        """
        waiting = deque(Part(call) for call in calls)
        results: list[Result | errors.BrokerError] = []
        while waiting:
            results += self._do_together([each.call for each in taken(waiting)], retry or self.retry)
        return results

    def do_later(self, call: Call[Any]) -> None:
        """Sends a call in the background. A failure is logged and counted in `lost`."""
        self._later.add(call)

    @property
    def lost(self) -> int:
        """The number of background calls that were not sent or were refused."""
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
            # This is the answer to another request, so further answers on this connection would be wrong, too.
            pool.renew()
            raise
        if len(self.urls) > 1 and requests.is_of_another(answer):
            self._move_on(used)
            raise requests.unreachable(self.urls[used], request, requests.of_another(self.urls[used], answer))
        return answer

    def _move_on(self, used: int) -> None:
        """Switches to the next address. Threads that failed at the same address switch only once together."""
        if self._used == used:
            self._used = (used + 1) % len(self._pools)
