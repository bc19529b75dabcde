"""Calls of the HTTP API: the request, and how the answer is read. Built without I/O, for threads and for tasks."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID

from mqbroker_client.core.documents import Document, encoded
from mqbroker_client.core.hooks import Hook, HookContext, entered

Result = TypeVar("Result")
Answered = TypeVar("Answered")


# Not frozen, although it is never changed: setting the fields of a frozen object takes eight times as long.
@dataclass(slots=True)
class Operation:
    """A call in the form of an operation of POST /v1/bulk."""

    #: The JSON of the fields that a single call has in its path, as the beginning of an object: from the brace to the
    #: comma after the last field.
    head: bytes
    #: Two calls for one transaction are never sent in one request.
    transaction_id: UUID | None = None


@dataclass(slots=True)
class Call(Generic[Result]):
    """A request to the broker, and the function that reads its answer.

    `content` is a JSON object, or None for a call without a body.
    """

    method: str
    target: str
    content: bytes | None = field(repr=False)
    read: Callable[[Document], Result]
    #: For how many seconds the broker may delay its answer, in a long poll.
    wait_seconds: float = 0
    #: The form of the call in a bulk; None for a call that is never sent together with other calls.
    operation: Operation | None = None
    traceparent: str | None = None
    #: The context for hooks; None if no hook runs around the call.
    context: HookContext | None = field(default=None, repr=False)

    @property
    def what(self) -> str:
        """Method and target of the request, for a log."""
        return f"{self.method} {self.target}"

    @property
    def part(self) -> bytes:
        """The call as JSON, as a part of a bulk."""
        assert self.operation is not None
        assert self.content is not None
        traced = b"" if self.traceparent is None else b'"traceparent":%s,' % json.dumps(self.traceparent).encode()
        return self.operation.head + traced + self.content[1:]


@contextmanager
def hooked(hooks: Sequence[Hook], calls: Sequence[Call[Any]]) -> Iterator[Callable[[list[Answered]], list[Answered]]]:
    """Runs the hooks around calls that are sent together.

    The caller passes the results through the yielded function, so that hooks see them.
    """
    contexts = [call.context for call in calls if call.context is not None]

    def answered(results: list[Answered]) -> list[Answered]:
        for call, result in zip(calls, results, strict=True):
            if call.context is not None:
                call.context.result = result
        return results

    with entered(hooks, *contexts):
        for call in calls:
            if call.context is not None:
                call.traceparent = call.context.traceparent
        yield answered


def path(*segments: object) -> str:
    """`path("topics", "%DLQ%a")` is `/v1/topics/%25DLQ%25a`."""
    return "/v1/" + "/".join(quote(str(segment), safe="") for segment in segments)


def call(
    method: str,
    target: str,
    body: Mapping[str, Any] | None,
    read: Callable[[Document], Result],
    *,
    query: Mapping[str, Any] | None = None,
    wait_seconds: float = 0,
    operation: Operation | None = None,
    traceparent: str | None = None,
    context: HookContext | None = None,
) -> Call[Result]:
    """A call with its body as JSON."""
    if query:
        target += f"?{urlencode(query)}"
    content = None if body is None else encoded(body).encode()
    return Call(method, target, content, read, wait_seconds, operation, traceparent, context)


def same(document: Document) -> Document:
    """Returns the answer unchanged."""
    return document
