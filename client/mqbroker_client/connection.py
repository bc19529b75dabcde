"""One broker, reached over HTTP by many threads: time limits, and retries that repeat nothing."""

import copy
import itertools
import json
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import urllib3

from mqbroker_client import errors
from mqbroker_client.ids import uuid7
from mqbroker_client.pool import Answer, ConnectionPool

VERSION = "0.1.0"
SHORTEST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0

#: A JSON object as it comes and goes.
Document = dict[str, Any]

#: What passes: the broker is away, busy, or asks for a slower pace.
PASSING = (errors.Unreachable, errors.Unavailable, errors.RateLimited)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how long, pauses included, a request is repeated while the broker is away or busy.

    `seconds` is the deadline of all tries together. A try may use half of the time that is left, and the last try all
    of it: a server that took a request and fell silent leaves time to ask again.
    """

    tries: int = 5
    seconds: float = 10.0


DEFAULT_RETRY = Retry()


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None

    @property
    def id(self) -> str:
        return self.headers["X-Request-Id"]


class Broker:
    """Where the broker is and who is asking. Safe to share between threads, and to make before a fork.

    A request is repeated after a broken connection, after 503 and after 429, never after another 4xx. That is safe
    because everything that is stored carries an id made here: the same request sent twice stores one thing.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        connect_seconds: float = 2.0,
        timeout_seconds: float = 10.0,
        retry: Retry = DEFAULT_RETRY,
        connections: int = 64,
    ) -> None:
        if urllib3.util.parse_url(url).scheme not in ("http", "https"):
            raise ValueError(f"the broker's address is http://… or https://…, not {url!r}")
        self.url = url.rstrip("/")
        self.connect_seconds = connect_seconds
        self.timeout_seconds = timeout_seconds
        self.retry = retry
        self._headers = {
            "Authorization": f"Bearer {_legal_key(api_key)}",
            "Accept": "application/json",
            "User-Agent": f"mqbroker-client/{VERSION}",
        }
        self._pool = ConnectionPool(self.url, connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    def apart(self) -> "Broker":
        """The same broker and key over a connection of its own, so that `hang_up` ends only what is asked there."""
        apart = copy.copy(self)
        apart._pool = ConnectionPool(self.url, 1)
        return apart

    def hang_up(self) -> None:
        """End the requests that other threads have under way, long polls too: each raises `Unreachable`."""
        self._pool.hang_up()

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
        retry = retry or self.retry
        request = self._request(method, path + (f"?{urlencode(query)}" if query else ""), body)
        give_up_at = time.monotonic() + retry.seconds + wait_seconds
        for tried in itertools.count(1):
            left = give_up_at - time.monotonic()
            share = left if tried >= retry.tries else min(left, wait_seconds + max(left - wait_seconds, 0) / 2)
            try:
                return self._once(request, min(self.timeout_seconds + wait_seconds, share))
            except PASSING as error:
                pause = _pause_seconds(error, tried)
                if tried >= retry.tries or time.monotonic() + pause >= give_up_at:
                    raise
            time.sleep(pause)
        raise AssertionError("unreachable: the loop above has no end")

    def _request(self, method: str, target: str, body: Mapping[str, Any] | None) -> _Request:
        headers = {**self._headers, "X-Request-Id": str(uuid7())}
        if body is None:
            return _Request(method, target, headers, None)
        headers["Content-Type"] = "application/json"
        return _Request(method, target, headers, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())

    def _once(self, request: _Request, seconds: float) -> Document:
        try:
            answer = self._pool.request(
                request.method,
                request.target,
                request.headers,
                request.body,
                connect_seconds=self.connect_seconds,
                seconds=max(seconds, 0.001),
            )
        except urllib3.exceptions.HTTPError as error:
            raise errors.Unreachable(
                f"no answer from {self.url}: {error}", code="unreachable", request_id=request.id
            ) from error
        self._require_own(request, answer)
        return _read(answer, request.id)

    def _require_own(self, request: _Request, answer: Answer) -> None:
        """A proxy may take the id away; an answer that bears another one belongs to another request."""
        found = answer.headers.get("X-Request-Id", request.id)
        if found == request.id:
            return
        # Whatever mixed the answers up, the next one on this connection would be wrong as well.
        self._pool.renew()
        raise errors.AnswerOfAnotherRequest(
            f"the answer from {self.url} bears the X-Request-Id {found[:100]!r} and the request {request.id!r}: a "
            "connection is shared between processes, or a proxy replaces the id and must pass it on",
            code="answer_of_another_request",
            request_id=request.id,
        )


def path(*segments: object) -> str:
    """`path("topics", "%DLQ%a")` is `/v1/topics/%25DLQ%25a`."""
    return "/v1/" + "/".join(quote(str(segment), safe="") for segment in segments)


def _legal_key(api_key: str) -> str:
    """The key without the newline of the file that it was read from. No refusal shows it: it would be in a log."""
    key = api_key.strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise ValueError("the API key is empty, or has a character that no key has: give the one line that was shown")
    return key


def _read(answer: Answer, request_id: str) -> Document:
    document = _document(answer.body)
    if not 200 <= answer.status < 300:
        raise errors.from_problem(answer.status, document or {}, request_id, answer.retry_after_seconds)
    if document is None:
        raise errors.AnswerNotUnderstood(
            f"{answer.status} with a body that is no JSON object",
            status=answer.status,
            code="answer_not_understood",
            request_id=request_id,
        )
    return document


def _document(data: bytes) -> Document | None:
    if not data:
        return {}
    try:
        document = json.loads(data)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _pause_seconds(error: errors.BrokerError, tried: int) -> float:
    pause = error.retry_after_seconds
    if pause is None:
        pause = min(SHORTEST_PAUSE_SECONDS * 2 ** (tried - 1), LONGEST_PAUSE_SECONDS)
    # Spread, so that the threads that were refused together do not come back together.
    return pause * random.uniform(1.0, 1.2)
