"""One broker, reached over HTTP by many threads: pooled connections, time limits, and retries that repeat nothing."""

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import urllib3

from mqbroker_client import errors
from mqbroker_client.ids import uuid7

VERSION = "0.1.0"
SHORTEST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0

#: A JSON object as it comes and goes.
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how long, pauses included, a request is repeated while the broker is away or busy.

    A try may use all of the time that is left: a slow answer is better than three that were cut off.
    """

    tries: int = 5
    seconds: float = 10.0


DEFAULT_RETRY = Retry()


class Broker:
    """Where the broker is and who is asking. Safe to share between threads; make a new one after a fork.

    A request is repeated after a broken connection and after 503, never after a 4xx. That is safe because everything
    that is stored carries an id made here: the same request sent twice stores one thing.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        timeout_seconds: float = 10.0,
        retry: Retry = DEFAULT_RETRY,
        connections: int = 64,
    ) -> None:
        if urllib3.util.parse_url(url).scheme not in ("http", "https"):
            raise ValueError(f"the broker's address is http://… or https://…, not {url!r}")
        self.url = url.rstrip("/")
        self.timeout_seconds = timeout_seconds
        self.retry = retry
        self._headers = {
            "Authorization": f"Bearer {api_key}",
            "Accept": "application/json",
            "User-Agent": f"mqbroker-client/{VERSION}",
        }
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._pool.clear()

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
        request_id = str(uuid7())
        give_up_at = time.monotonic() + retry.seconds + wait_seconds
        tried = 0
        while True:
            seconds = min(self.timeout_seconds + wait_seconds, give_up_at - time.monotonic())
            try:
                return self._once(method, path, body, query, request_id, seconds)
            except (errors.Unreachable, errors.Unavailable) as error:
                tried += 1
                pause = _pause_seconds(error, tried)
                if tried >= retry.tries or time.monotonic() + pause >= give_up_at:
                    raise
            time.sleep(pause)

    def _once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, Any] | None,
        request_id: str,
        seconds: float,
    ) -> Document:
        url = self.url + path + (f"?{urlencode(query)}" if query else "")
        headers = {**self._headers, "X-Request-Id": request_id}
        payload = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            payload = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            answer = self._pool.request(
                method,
                url,
                body=payload,
                headers=headers,
                timeout=urllib3.Timeout(total=max(seconds, 0.001)),
                retries=False,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise errors.Unreachable(
                f"no answer from {self.url}: {error}", code="unreachable", request_id=request_id
            ) from error
        return _read(answer, answer.headers.get("X-Request-Id", request_id))


def path(*segments: object) -> str:
    """`path("topics", "%DLQ%a")` is `/v1/topics/%25DLQ%25a`."""
    return "/v1/" + "/".join(quote(str(segment), safe="") for segment in segments)


def _read(answer: urllib3.BaseHTTPResponse, request_id: str) -> Document:
    document = _document(answer.data)
    if not 200 <= answer.status < 300:
        raise errors.from_problem(answer.status, document or {}, request_id, _retry_after_seconds(answer))
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


def _retry_after_seconds(answer: urllib3.BaseHTTPResponse) -> float | None:
    try:
        return urllib3.Retry().get_retry_after(answer)
    except urllib3.exceptions.InvalidHeader:
        return None


def _pause_seconds(error: errors.BrokerError, tried: int) -> float:
    pause = error.retry_after_seconds
    if pause is None:
        pause = min(SHORTEST_PAUSE_SECONDS * 2 ** (tried - 1), LONGEST_PAUSE_SECONDS)
    # Spread, so that the threads that were refused together do not come back together.
    return pause * random.uniform(1.0, 1.2)
