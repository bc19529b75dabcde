"""Builds HTTP requests and interprets their answers, without I/O."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import urllib3

from mqbroker_client.core import errors, gateways
from mqbroker_client.core.calls import Call, Result
from mqbroker_client.core.compression import Compression
from mqbroker_client.core.documents import Document
from mqbroker_client.core.hooks import Hook
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.retries import Retry

VERSION = "0.1.0"
CONNECTION = re.compile(r"^\w+\(host=.*?\): ")


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    #: repr does not show these fields: the headers contain the API key, the content may contain an endpoint's secret.
    headers: dict[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)

    @property
    def id(self) -> str:
        return self.headers["X-Request-Id"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer whose body was read completely."""

    status: int
    #: The headers of the answer, by lower-case name.
    headers: Mapping[str, str] = field(repr=False)
    #: repr does not show the body, which may contain receipt handles or a new key.
    body: bytes = field(repr=False)


class Requests:
    """Builds requests with one API key, and in a namespace if one is given."""

    def __init__(self, api_key: str, namespace: str | None = None) -> None:
        self._headers = {
            "Authorization": f"Bearer {_legal_key(api_key)}",
            "Accept": "application/json",
            "User-Agent": f"mqbroker-client/{VERSION}",
        }
        if namespace is not None:
            self._headers["X-Namespace"] = _legal_namespace(namespace)

    def of(self, call: Call[Any]) -> Request:
        """The request for a single call."""
        request = self._request(call.method, call.target, call.content)
        if call.traceparent is not None:
            request.headers["traceparent"] = call.traceparent
        return request

    def bulk(self, calls: Sequence[Call[Any]]) -> Request:
        """The request for several calls together."""
        parts = b",".join([call.part for call in calls])
        return self._request("POST", "/v1/bulk", b'{"operations":[%s]}' % parts)

    def _request(self, method: str, target: str, content: bytes | None) -> Request:
        headers = {**self._headers, "X-Request-Id": str(uuid7())}
        if content is not None:
            headers["Content-Type"] = "application/json"
        return Request(method, target, headers, content)


class OwnRequest:
    """The request of a call that is sent alone, the same in each attempt. It is only built if it is needed."""

    __slots__ = ("_call", "_made", "_requests")

    def __init__(self, requests: Requests, call: Call[Any]) -> None:
        self._requests = requests
        self._call = call
        self._made: Request | None = None

    def get(self) -> Request:
        """The request, built at the first attempt."""
        if self._made is None:
            self._made = self._requests.of(self._call)
        return self._made


def addresses(url: str | Sequence[str]) -> list[str]:
    """The broker's addresses: one, several with commas between them, or a list. The first is tried first."""
    found = [part.strip().rstrip("/") for part in (url.split(",") if isinstance(url, str) else url)]
    for one in found or [""]:
        parsed = urllib3.util.parse_url(one)
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ValueError(f"the broker's address is http://… or https://…, not {one!r}")
    return found


class Options(TypedDict, total=False):
    """The options of a `Broker` or an `AsyncBroker`, besides address and key."""

    connect_seconds: float
    timeout_seconds: float
    retry: Retry
    connections: int
    coalescing: bool
    hooks: Sequence[Hook]
    compression: Compression | None
    namespace: str | None


def unreachable(url: str, request: Request, reason: object) -> errors.Unreachable:
    """The error for a request without an answer."""
    # Removes urllib3's text of the connection object, which repeats the address.
    why = CONNECTION.sub("", str(reason)) or type(reason).__name__
    return errors.Unreachable(f"no answer from {url}: {why}", code="unreachable", request_id=request.id)


def is_of_another(answer: Answer) -> bool:
    """Whether another program answered in place of the broker: a gateway in front of it, or a wrong server.

    The broker's own answers are JSON objects, and its refusals have a code.
    """
    if 200 <= answer.status < 300:
        return bool(answer.body) and answer.body.lstrip()[:1] != b"{"
    return "code" not in (_document(answer.body) or {})


def is_own(request: Request, headers: Mapping[str, str]) -> bool:
    """Whether the answer belongs to the request.

    A proxy may remove the request id; another id means another request.
    """
    return headers.get("x-request-id", request.id) == request.id


def require_own(url: str, request: Request, answer: Answer) -> None:
    """Raises AnswerOfAnotherRequest if the answer belongs to another request."""
    if is_own(request, answer.headers):
        return
    found = answer.headers["x-request-id"]
    raise errors.AnswerOfAnotherRequest(
        f"the answer from {url} bears the X-Request-Id {found[:100]!r} and the request {request.id!r}: a "
        "connection is shared between processes, or a proxy replaces the id and must pass it on",
        code="answer_of_another_request",
        request_id=request.id,
    )


def of_another(url: str, answer: Answer) -> str:
    """Describes in words which program answered in place of the broker."""
    return gateways.words(url, answer.status, answer.headers, answer.body)


def document_of(url: str, request: Request, answer: Answer) -> Document:
    """The JSON object of an answer with 2xx. Raises a `BrokerError` for any other answer."""
    document = _document(answer.body)
    if not 200 <= answer.status < 300:
        problem = document or {}
        if "code" not in problem:
            problem = {**problem, "detail": of_another(url, answer)}
        raise errors.from_problem(answer.status, problem, request.id, _retry_after_seconds(answer))
    if document is None:
        raise _not_understood(request, of_another(url, answer), answer.status)
    return document


def result_of(call: Call[Result], document: Document) -> Result:
    """The result of a call from its answer. Raises AnswerNotUnderstood if the answer lacks the fields of this call."""
    try:
        return call.read(document)
    except (KeyError, TypeError, ValueError) as error:
        detail = f"the answer to {call.what} has not its fields: {type(error).__name__}: {error}"
        raise errors.AnswerNotUnderstood(detail, status=200, code="answer_not_understood") from error


def results_of(
    request: Request, document: Document, calls: Sequence[Call[Result]]
) -> list[Result | errors.BrokerError]:
    """The result or error of each call of a bulk, in their order. Raises AnswerNotUnderstood if their number differs.

    One thread reads all results: if each waiting thread read its own result, this would take twice as long.
    """
    results, count = document.get("results"), len(calls)
    if not isinstance(results, list) or len(results) != count:
        raise _not_understood(request, f"a bulk of {count} operations was not answered by as many results", 200)
    return [_result(request, call, result) for call, result in zip(calls, results, strict=True)]


def _result(request: Request, call: Call[Any], result: Document) -> Any:
    if not isinstance(result, dict) or not isinstance(result.get("status"), int):
        raise _not_understood(request, "a result of a bulk has no status", 200)
    status: int = result["status"]
    if 200 <= status < 300:
        try:
            return result_of(call, result)
        except errors.AnswerNotUnderstood as error:
            return error
    # For a single call this is the header Retry-After.
    pause = result.get("retry_after_seconds")
    return errors.from_problem(status, result, request.id, None if pause is None else float(pause))


def _not_understood(request: Request, detail: str, status: int) -> errors.AnswerNotUnderstood:
    return errors.AnswerNotUnderstood(detail, status=status, code="answer_not_understood", request_id=request.id)


def _document(data: bytes) -> Document | None:
    if not data:
        return {}
    try:
        document = json.loads(data)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _retry_after_seconds(answer: Answer) -> float | None:
    value = answer.headers.get("retry-after")
    if value is None:
        return None
    try:
        return urllib3.Retry().parse_retry_after(value)
    except urllib3.exceptions.InvalidHeader:
        return None


def _legal_namespace(namespace: str) -> str:
    """The namespace, if it can be sent as a header. The broker checks whether it is valid."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", namespace):
        raise ValueError(f"the namespace {namespace!r} is not of letters, digits, _ and -")
    return namespace


def _legal_key(api_key: str) -> str:
    """The key without the final newline of the file it was read from.

    No error message shows the key, because logs keep messages.
    """
    key = api_key.strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise ValueError("the API key is empty, or has a character that no key has: give the one line that was shown")
    return key
