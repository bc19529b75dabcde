"""The producer's answer to checks: a WSGI or ASGI application that the broker calls, or a thread that fetches them."""

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from standardwebhooks import Webhook, WebhookVerificationError

from mqbroker_client import errors
from mqbroker_client.connection import Document, path
from mqbroker_client.messages import HalfMessage
from mqbroker_client.producers import Producer
from mqbroker_client.states import LocalTransactionState, outcome_of

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

log = logging.getLogger(__name__)

#: Says what came of a half's local transaction. None and any exception mean UNKNOWN.
Check = Callable[[HalfMessage], LocalTransactionState | None]

#: A body of 4 MiB as base64 in JSON is under 6 MiB; a text of control characters is six times its size.
MAX_CHECK_BYTES = 32 * 1024 * 1024
LONGEST_PAUSE_SECONDS = 10.0

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reply:
    status: HTTPStatus
    document: Document

    @property
    def body(self) -> bytes:
        return json.dumps(self.document).encode()

    @property
    def content_type(self) -> str:
        return "application/json" if self.status == HTTPStatus.OK else "application/problem+json"


@dataclass(frozen=True, slots=True)
class CheckListener:
    """Answers signed `transaction.check` calls; mount `listener.wsgi` or `listener.asgi` at the endpoint's URL.

    `secrets` holds every secret that may have signed: two of them while one is being rotated.
    """

    check: Check
    secrets: Sequence[str]

    def __post_init__(self) -> None:
        if not self.secrets:
            raise ValueError("a check listener needs at least one secret; registering the endpoint gives it")

    def reply(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """The answer to one POST. Nothing in an unsigned or altered body is looked at."""
        if not any(_signed_by(secret, headers, body) for secret in self.secrets):
            return _problem(HTTPStatus.UNAUTHORIZED, "the signature is missing, too old, or made with no known secret")
        try:
            event = json.loads(body)
            halves = [HalfMessage.read(entry, event["producer_group"]) for entry in event["transactions"]]
        except (ValueError, KeyError, TypeError) as error:
            return _problem(HTTPStatus.BAD_REQUEST, f"not a transaction.check event: {type(error).__name__}: {error}")
        return Reply(HTTPStatus.OK, {"results": [self._result(half) for half in halves]})

    def wsgi(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        reply = self._wsgi_reply(environ)
        body = reply.body
        start_response(
            f"{reply.status.value} {reply.status.phrase}",
            [("Content-Type", reply.content_type), ("Content-Length", str(len(body)))],
        )
        return [body]

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"only http is answered here, not {scope['type']}")
        reply = await self._asgi_reply(scope, receive)
        headers = [(b"content-type", reply.content_type.encode()), (b"content-length", b"%d" % len(reply.body))]
        await send({"type": "http.response.start", "status": reply.status.value, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    def _result(self, half: HalfMessage) -> Document:
        outcome = outcome_of(lambda: self.check(half))
        result = {"transaction_id": str(half.transaction_id), "state": outcome.state.value}
        return result | {"remark": outcome.remark} if outcome.remark else result

    def _wsgi_reply(self, environ: "WSGIEnvironment") -> Reply:
        if environ["REQUEST_METHOD"] != "POST":
            return _only_post()
        try:
            length = int(environ.get("CONTENT_LENGTH") or 0)
        except ValueError:
            return _problem(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        if length > MAX_CHECK_BYTES:
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
            if len(body) > MAX_CHECK_BYTES:
                return _too_large()
            if not event.get("more_body", False):
                break
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        # The producer's function reads its database and may block.
        return await asyncio.to_thread(self.reply, headers, body)


class CheckPoller:
    """A thread that fetches due checks and answers them, for producers that the broker cannot call."""

    def __init__(
        self, producer: Producer, check: Check, *, max_transactions: int = 16, wait_seconds: float = 20.0
    ) -> None:
        self.producer = producer
        self.check = check
        self.max_transactions = max_transactions
        self.wait_seconds = wait_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"checks of {producer.group}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, timeout_seconds: float | None = None) -> None:
        """Stop after the request under way, which may be a long poll of `wait_seconds`."""
        self._stopping.set()
        self._thread.join(timeout_seconds)

    def answer_due(self) -> int:
        """Fetch and answer what is due, once; how many were asked."""
        answer = self.producer.broker.call(
            "POST",
            path("producer-groups", self.producer.group, "checks", "receive"),
            {"max_transactions": self.max_transactions, "wait_seconds": self.wait_seconds},
            wait_seconds=self.wait_seconds,
        )
        for entry in answer["transactions"]:
            self._answer(HalfMessage.read(entry, self.producer.group))
        return len(answer["transactions"])

    def _answer(self, half: HalfMessage) -> None:
        outcome = outcome_of(lambda: self.check(half))
        try:
            self.producer.end(half.transaction_id, outcome.state, from_transaction_check=True, remark=outcome.remark)
        except errors.Conflict as error:
            log.info("transaction %s was decided before the check was answered: %s", half.transaction_id, error)
        except errors.BrokerError as error:
            log.warning("transaction %s: the answer was not told, it is asked again: %s", half.transaction_id, error)

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                self.answer_due()
                failures = 0
            except errors.BrokerError as error:
                failures += 1
                log.warning("checks of %s were not fetched: %s", self.producer.group, error)
                self._stopping.wait(min(0.5 * 2 ** min(failures, 10), LONGEST_PAUSE_SECONDS))


def _signed_by(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    except (WebhookVerificationError, ValueError):
        # ValueError: a header or a body that cannot even be taken apart.
        return False
    return True


def _only_post() -> Reply:
    return _problem(HTTPStatus.METHOD_NOT_ALLOWED, "checks come by POST")


def _too_large() -> Reply:
    return _problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a check is at most {MAX_CHECK_BYTES} bytes")


def _problem(status: HTTPStatus, detail: str) -> Reply:
    return Reply(status, {"title": status.phrase, "status": status.value, "detail": detail})
