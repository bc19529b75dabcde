"""The HTTP calls that are operations of the message path: one table for single calls and for items of a bulk."""

import uuid
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from access.callers import Caller
from delivery.receipts.forward import Forward
from delivery.receipts.settling import Ack
from mqbroker.api import requests
from mqbroker.api.answers import Answer
from mqbroker.api.receipts import AckDeliveries, results_of
from mqbroker.api.requests import DataRequest
from scheduling.sending.batches import SendBatch, SentBatch
from scheduling.sending.send import Send
from store.commit import writer
from store.commit.operation import Operation
from store.messages import Message
from store.messages.times import encode
from transactions.operations.begin import Begin
from transactions.operations.end import End, EndTransaction
from transactions.operations.validation import BeginTransaction

Given = TypeVar("Given")
Made = TypeVar("Made", bound=Operation[Any])


class Source(Protocol):
    """The source of an operation: its caller, its trace context, and the size of its request in bytes."""

    @property
    def caller(self) -> Caller: ...

    @property
    def traceparent(self) -> str | None: ...

    @property
    def size(self) -> int: ...


# The answer to a written operation: a status, and the value to be encoded.
Answered = tuple[int, object]


class Call(Generic[Given, Made]):
    """A call of the API that is one operation: the shape of its request, how the operation is made, and its answer."""

    def __init__(
        self,
        name: str,
        shape: type[Given],
        make: Callable[..., Made],
        answered: Callable[[Made], Answered],
        require: Callable[..., None] | None = None,
    ) -> None:
        # The name of the view, which is the schema's id of the call.
        self.__name__ = name
        self.shape = shape
        # Makes the operation from the decoded body, its source and the path's parameters. Raises a Refusal.
        self.make = make
        self.answered = answered
        # Raises NoPermission before the body is decoded, if the path is enough to decide.
        self._require = require

    def operation(self, request: DataRequest, **named: Any) -> Made:
        """The operation of a request whose body is not large. Raises a Refusal."""
        if self._require is not None:
            self._require(request.caller, **named)
        return self.make(request.decode(self.shape), request, **named)

    def answer(self, operation: Made) -> Answer:
        """The answer to an operation that was written."""
        status, document = self.answered(operation)
        return Answer(encode(document), status)

    async def __call__(self, request: DataRequest, **named: Any) -> Answer:
        """The view."""
        if self._require is not None:
            self._require(request.caller, **named)
        operation = self.make(await request.given(self.shape), request, **named)
        await writer.run(operation)
        return self.answer(operation)


async def rest_of(operation: Operation[Any], *, is_ready: bool) -> None:
    """Writes an operation after the call of `ready`; first completes an operation that was not ready."""
    if not is_ready:
        await operation.complete()
    await writer.write(operation)


def _send(given: Message | SendBatch, source: Source) -> Send:
    return Send(given, source.traceparent, source.caller, source.size)


def _sent(send: Send) -> Answered:
    assert send.result is not None
    document = SentBatch(send.result) if isinstance(send.given, SendBatch) else send.result[0]
    return 200 if send.result[0].duplicate is True else 201, document


def _begin(given: BeginTransaction, source: Source) -> Begin:
    return Begin(given, source.traceparent, source.caller, source.size)


def _begun(begin: Begin) -> Answered:
    assert begin.result is not None
    return 200 if begin.result.duplicate is True else 201, begin.result


def _end(given: EndTransaction, source: Source, transaction_id: str | uuid.UUID) -> End:
    found = requests.transaction_id(transaction_id) if isinstance(transaction_id, str) else transaction_id
    return End.of_producer(found, given, source.caller)


def _ended(end: End) -> Answered:
    """The answer to an end, with its status: 200 for a decision, 202 for UNKNOWN."""
    return 202 if end.decision == "UNKNOWN" else 200, end.result


def _ack(given: AckDeliveries, source: Source, group: str) -> Ack | Forward:
    if given.messages is not None:
        return Forward(group, given.receipt_handles, given.messages, source.traceparent, source.caller, source.size)
    return Ack(group, given.receipt_handles, source.caller)


def _require_consume(caller: Caller, group: str) -> None:
    caller.require("consume", group)


def _acked(ack: Ack | Forward) -> Answered:
    if isinstance(ack, Forward):
        document = results_of(ack.given, [None] * len(ack.given))
        document.messages = ack.result or []
        return 200, document
    return 200, results_of(ack.given, ack.outcomes())


SEND = Call("send", Message, _send, _sent)
SEND_BATCH = Call("send_batch", SendBatch, _send, _sent)
BEGIN = Call("begin", BeginTransaction, _begin, _begun)
END = Call("end", EndTransaction, _end, _ended)
ACK = Call("ack", AckDeliveries, _ack, _acked, _require_consume)
