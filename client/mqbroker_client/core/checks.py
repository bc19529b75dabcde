"""Answers the broker's signed checks, as a WSGI or an ASGI application."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from standardwebhooks import Webhook, WebhookVerificationError

from mqbroker_client.core import tracing
from mqbroker_client.core.documents import Document
from mqbroker_client.core.executor import CheckExecutor, ended
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.hooks import Hook, checked, entered
from mqbroker_client.core.states import LocalTransactionState, Outcome, in_thread, outcome_of

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

#: Returns the outcome of a half message's local transaction. None and any exception mean UNKNOWN.
Check = Callable[[HalfMessage], LocalTransactionState | None]


@runtime_checkable
class BatchCheck(Protocol):
    """A check function that answers several half messages at once, as the barrier does with one SELECT."""

    def answer(self, halves: Sequence[HalfMessage]) -> Sequence[Outcome]: ...


def outcomes_of(
    check: Check, halves: Sequence[HalfMessage], hooks: Sequence[Hook]
) -> Generator[tuple[HalfMessage, Outcome], None, None]:
    """Yields each half message with its outcome; a check that takes one half message is called for each in turn.

    If a hook raises an error before the check of one half message, the error counts as the check's error. For a check
    of several half messages at once, the error is raised.
    """
    if not isinstance(check, BatchCheck):
        for half in halves:
            yield half, outcome_of(partial(in_thread, partial(_checked, check, half, hooks)))
        return
    contexts = [checked(half) for half in halves]
    with entered(hooks, *contexts):
        outcomes = check.answer(halves)
        for context, outcome in zip(contexts, outcomes, strict=True):
            context.result = outcome.state
    yield from zip(halves, outcomes, strict=True)


def _checked(check: Check, half: HalfMessage, hooks: Sequence[Hook]) -> LocalTransactionState | None:
    context = checked(half)
    with entered(hooks, context):
        context.result = found = check(half)
    return found


#: A body of 4 MiB takes less than 6 MiB as base64 in JSON; a text of control characters becomes six times as long.
MAX_CALL_BYTES = 32 * 1024 * 1024

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reply:
    """The HTTP answer to a call from the broker: results, or a problem document."""

    status: HTTPStatus
    document: Document

    @property
    def body(self) -> bytes:
        return json.dumps(self.document).encode()

    @property
    def content_type(self) -> str:
        return "application/json" if self.status == HTTPStatus.OK else "application/problem+json"


class SignedListener:
    """Answers signed calls from the broker.

    The listener is an ASGI application, which can be added as a route; `wsgi` is a WSGI application; `reply` is for the
    view of any other framework. Redirects, log-in and CSRF checks of a framework must not apply to this URL. `secrets`
    holds every secret that may be in use: two while a secret is being rotated.
    """

    __slots__ = ()
    #: The `type` of the calls that this listener answers.
    EVENT = ""
    secrets: Sequence[str]

    def _read(self, event: Any) -> Sequence[Any]:
        """Reads the subjects of a call. Raises ValueError, KeyError or TypeError for another type of call."""
        raise NotImplementedError

    def _results(self, read: Sequence[Any]) -> list[Document]:
        """The results for the answer."""
        raise NotImplementedError

    def reply(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """The answer to one POST. A body without a valid signature is not parsed."""
        if len(body) > MAX_CALL_BYTES:
            return _too_large()
        if not any(_signed_by(secret, headers, body) for secret in self.secrets):
            return _problem(HTTPStatus.UNAUTHORIZED, "the signature is missing, too old, or made with no known secret")
        try:
            read = self._read(json.loads(body))
        except (ValueError, KeyError, TypeError) as error:
            return _problem(HTTPStatus.BAD_REQUEST, f"not a {self.EVENT} event: {type(error).__name__}: {error}")
        return Reply(HTTPStatus.OK, {"results": self._results(read)})

    def wsgi(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """The listener as a WSGI application."""
        reply = self._wsgi_reply(environ)
        body = reply.body
        start_response(
            f"{reply.status.value} {reply.status.phrase}",
            [("Content-Type", reply.content_type), ("Content-Length", str(len(body)))],
        )
        return [body]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Routers treat a function or a method as a view, but an object of a class as an ASGI application.
        await self.asgi(scope, receive, send)

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The listener as an ASGI application, as a function. Raises ValueError for a scope that is not HTTP."""
        if scope["type"] != "http":
            raise ValueError(f"only http is answered here, not {scope['type']}")
        reply = await self._asgi_reply(scope, receive)
        headers = [(b"content-type", reply.content_type.encode()), (b"content-length", b"%d" % len(reply.body))]
        await send({"type": "http.response.start", "status": reply.status.value, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    def _wsgi_reply(self, environ: "WSGIEnvironment") -> Reply:
        if environ["REQUEST_METHOD"] != "POST":
            return _only_post()
        try:
            length = int(environ.get("CONTENT_LENGTH") or 0)
        except ValueError:
            return _problem(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        if not 0 <= length <= MAX_CALL_BYTES:
            return _too_large()
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        return self.reply(headers, environ["wsgi.input"].read(length))

    async def _asgi_reply(self, scope: Scope, receive: Receive) -> Reply:
        if scope["method"] != "POST":
            return _only_post()
        body = b""
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                return _problem(HTTPStatus.BAD_REQUEST, "the caller left before its request was whole")
            body += event.get("body", b"")
            if len(body) > MAX_CALL_BYTES:
                return _too_large()
            if not event.get("more_body", False):
                break
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        # The check runs in a thread, because the producer's function reads its database and may block.
        return await asyncio.to_thread(self.reply, headers, body)


@dataclass(frozen=True, slots=True)
class CheckListener(SignedListener):
    """Answers signed `transaction.check` calls at the endpoint's URL, as a `SignedListener`.

    The half messages of a call are checked one after the other; with an `executor`, several at once.
    """

    EVENT = "transaction.check"
    check: Check
    secrets: Sequence[str] = field(repr=False)
    executor: CheckExecutor | None = None
    #: Hooks that run around each check, after OpenTelemetry's.
    hooks: Sequence[Hook] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "secrets", listed(self.secrets, "a check listener", "registering the endpoint"))

    def _read(self, event: Any) -> Sequence[HalfMessage]:
        return [HalfMessage.read(entry, event["producer_group"]) for entry in event["transactions"]]

    def _results(self, read: Sequence[HalfMessage]) -> list[Document]:
        if self.executor is None or isinstance(self.check, BatchCheck):
            return [_result(*found) for found in self._outcomes(read)]
        found: dict[int, Document] = {}

        def answer(number: int) -> int:
            [(half, outcome)] = self._outcomes([read[number]])
            found[number] = _result(half, outcome)
            return 1

        ended([self.executor.begin(answer, number) for number in range(len(read))])
        return [found[number] for number in range(len(read))]

    def _outcomes(self, read: Sequence[HalfMessage]) -> Iterable[tuple[HalfMessage, Outcome]]:
        return outcomes_of(self.check, read, (*tracing.HOOKS, *self.hooks))


def listed(secrets: Sequence[str], whose: str, given_by: str) -> Sequence[str]:
    """The secrets that are not empty. Raises ValueError if there is none, or if a secret cannot sign."""
    found = [secret for secret in ((secrets,) if isinstance(secrets, str) else secrets) if secret]
    if not found:
        raise ValueError(f"{whose} needs at least one secret; {given_by} gives it")
    for secret in found:
        try:
            Webhook(secret)
        except Exception as error:  # noqa: BLE001 the library's errors have no common class
            raise ValueError(f"a secret of {whose} is whsec_ and base64: {error}") from None
    return tuple(found)


def _result(half: HalfMessage, outcome: Outcome) -> Document:
    result = {"transaction_id": str(half.transaction_id), "state": outcome.state.value}
    return result | {"remark": outcome.remark} if outcome.remark else result


def _signed_by(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    except (WebhookVerificationError, ValueError):
        # ValueError: the header or body cannot be parsed.
        return False
    return True


def _only_post() -> Reply:
    return _problem(HTTPStatus.METHOD_NOT_ALLOWED, "the broker calls by POST")


def _too_large() -> Reply:
    return _problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a call of the broker has at most {MAX_CALL_BYTES} bytes")


def _problem(status: HTTPStatus, detail: str) -> Reply:
    return Reply(status, {"title": status.phrase, "status": status.value, "detail": detail})
