"""One HTTP request as it leaves, and its answer as it is understood. No I/O."""

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
    #: With the API key, as the content of one that registers an endpoint has its secret.
    headers: dict[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)

    @property
    def id(self) -> str:
        return self.headers["X-Request-Id"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer whose body was read to its end."""

    status: int
    #: By their names in small letters.
    headers: Mapping[str, str] = field(repr=False)
    #: With receipt handles, or a key that was made.
    body: bytes = field(repr=False)


class Requests:
    """Makes the requests of one API key, in a namespace where one is given."""

    def __init__(self, api_key: str, namespace: str | None = None) -> None:
        self._headers = {
            "Authorization": f"Bearer {_legal_key(api_key)}",
            "Accept": "application/json",
            "User-Agent": f"mqbroker-client/{VERSION}",
        }
        if namespace is not None:
            self._headers["X-Namespace"] = _legal_namespace(namespace)

    def of(self, call: Call[Any]) -> Request:
        """A call by itself."""
        request = self._request(call.method, call.target, call.content)
        if call.traceparent is not None:
            request.headers["traceparent"] = call.traceparent
        return request

    def bulk(self, calls: Sequence[Call[Any]]) -> Request:
        """Calls that go together."""
        parts = b",".join([call.part for call in calls])
        return self._request("POST", "/v1/bulk", b'{"operations":[%s]}' % parts)

    def _request(self, method: str, target: str, content: bytes | None) -> Request:
        headers = {**self._headers, "X-Request-Id": str(uuid7())}
        if content is not None:
            headers["Content-Type"] = "application/json"
        return Request(method, target, headers, content)


class OwnRequest:
    """The request of one call by itself, the same in each of its tries; a call that goes with others needs none."""

    __slots__ = ("_call", "_made", "_requests")

    def __init__(self, requests: Requests, call: Call[Any]) -> None:
        self._requests = requests
        self._call = call
        self._made: Request | None = None

    def get(self) -> Request:
        """Made at the first try."""
        if self._made is None:
            self._made = self._requests.of(self._call)
        return self._made


def addresses(url: str | Sequence[str]) -> list[str]:
    """The broker's addresses: one, several with commas between them, or a list. The first one is tried first."""
    found = [part.strip().rstrip("/") for part in (url.split(",") if isinstance(url, str) else url)]
    for one in found or [""]:
        if urllib3.util.parse_url(one).scheme not in ("http", "https"):
            raise ValueError(f"the broker's address is http://… or https://…, not {one!r}")
    return found


class Options(TypedDict, total=False):
    """What a `Broker` or an `AsyncBroker` is made with beside its address and its key."""

    connect_seconds: float
    timeout_seconds: float
    retry: Retry
    connections: int
    coalescing: bool
    hooks: Sequence[Hook]
    compression: Compression | None
    namespace: str | None


def unreachable(url: str, request: Request, reason: object) -> errors.Unreachable:
    """The error of a request without an answer."""
    # urllib3 names its connection, which is the address again.
    why = CONNECTION.sub("", str(reason)) or type(reason).__name__
    return errors.Unreachable(f"no answer from {url}: {why}", code="unreachable", request_id=request.id)


def is_of_another(answer: Answer) -> bool:
    """Whether something else answered in the broker's place: a gateway before it, or a program that is none.

    The broker's own answers are JSON objects, and its refusals have a code.
    """
    if 200 <= answer.status < 300:
        return bool(answer.body) and answer.body.lstrip()[:1] != b"{"
    return "code" not in (_document(answer.body) or {})


def is_own(request: Request, headers: Mapping[str, str]) -> bool:
    """A proxy may take the id away; an answer that bears another one belongs to another request."""
    return headers.get("x-request-id", request.id) == request.id


def require_own(url: str, request: Request, answer: Answer) -> None:
    """Raises AnswerOfAnotherRequest for one."""
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
    """What answered in the broker's place, in words."""
    return gateways.words(url, answer.status, answer.headers, answer.body)


def document_of(url: str, request: Request, answer: Answer) -> Document:
    """The JSON object of a 2xx. Raises the `BrokerError` of any other answer."""
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
    """What an answer says. Raises AnswerNotUnderstood where it has not the fields of an answer to this call."""
    try:
        return call.read(document)
    except (KeyError, TypeError, ValueError) as error:
        detail = f"the answer to {call.what} has not its fields: {type(error).__name__}: {error}"
        raise errors.AnswerNotUnderstood(detail, status=200, code="answer_not_understood") from error


def results_of(
    request: Request, document: Document, calls: Sequence[Call[Result]]
) -> list[Result | errors.BrokerError]:
    """The result or error of each call of a bulk, in their order. Raises AnswerNotUnderstood for fewer or more.

    All are read here, by one thread: each of the threads that wait for one would take twice as long for its own.
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
    # What a call by itself is answered as the header Retry-After.
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
    """The namespace, which stands in a header. What it may be is the broker's to say."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", namespace):
        raise ValueError(f"the namespace {namespace!r} is not of letters, digits, _ and -")
    return namespace


def _legal_key(api_key: str) -> str:
    """The key without the newline of the file that it was read from. No refusal shows it: it would be in a log."""
    key = api_key.strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise ValueError("the API key is empty, or has a character that no key has: give the one line that was shown")
    return key
