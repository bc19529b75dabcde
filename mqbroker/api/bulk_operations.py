"""The items of a bulk: their shapes, how they are decoded, and how each becomes an operation."""

import contextlib
import uuid
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from access.callers import Caller
from mqbroker.api import operations
from mqbroker.api.operations import Call
from mqbroker.api.receipts import AckDeliveries
from mqbroker.api.requests import DataRequest
from store.commit.operation import Operation
from store.errors import Refusal
from store.messages import Message
from store.messages.fields import MAX_TRACEPARENT
from transactions.operations.end import EndTransaction
from transactions.operations.validation import BeginTransaction

# The item's own trace context, because many callers may share a request; otherwise the request's header counts. W3C's
# format has 55 characters, and no control characters.
Traceparent = Annotated[str, msgspec.Meta(max_length=MAX_TRACEPARENT, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Bulk(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A bulk request whose operations are not decoded yet."""

    operations: list[msgspec.Raw]


class SendOperation(Message, kw_only=True, tag_field="op", tag="send", forbid_unknown_fields=True):
    """POST /v1/messages within a bulk."""

    traceparent: Traceparent | None = None


class HalfOperation(BeginTransaction, kw_only=True, tag_field="op", tag="half", forbid_unknown_fields=True):
    """POST /v1/transactions within a bulk."""

    traceparent: Traceparent | None = None


class EndOperation(EndTransaction, kw_only=True, tag_field="op", tag="end", forbid_unknown_fields=True):
    """POST /v1/transactions/{transaction_id}/end within a bulk."""

    transaction_id: uuid.UUID


class AckOperation(AckDeliveries, kw_only=True, tag_field="op", tag="ack", forbid_unknown_fields=True):
    """POST /v1/consumer-groups/{group}/ack within a bulk."""

    group: str


Given = SendOperation | HalfOperation | EndOperation | AckOperation
OF_GROUPS = (HalfOperation, EndOperation)
TRACED = (SendOperation, HalfOperation)


class Of(NamedTuple):
    """An operation of a bulk: its call, how the call makes an operation from it, and the ids that it names."""

    call: Call[Any, Any]
    # Makes the operation like `Call.make`, but reads the path's parameters from fields of the item.
    make: Callable[[Any, operations.Source], Operation[Any]]
    ids: Callable[[Any], Sequence[uuid.UUID | None]]


CALLS: dict[type[Given], Of] = {
    SendOperation: Of(operations.SEND, operations.SEND.make, lambda given: (given.message_id,)),
    HalfOperation: Of(
        operations.BEGIN,
        operations.BEGIN.make,
        lambda given: (given.transaction_id, *[message.message_id for message in given.given]),
    ),
    EndOperation: Of(
        operations.END,
        lambda given, source: operations.END.make(given, source, given.transaction_id),
        lambda given: (given.transaction_id,),
    ),
    AckOperation: Of(
        operations.ACK,
        lambda given, source: operations.ACK.make(given, source, given.group),
        lambda given: [message.message_id for message in given.messages or ()],
    ),
}


class Operations(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The shape of a valid bulk request; used if every operation in it is valid."""

    operations: list[Given]


class Source(NamedTuple):
    """The source of one operation in a bulk: its caller, its trace context and its size."""

    caller: Caller
    traceparent: str | None
    size: int


class Read(msgspec.Struct, gc=False):
    """A decoded operation with its number in the request, and its size in bytes if the caller's key has limits."""

    number: int
    given: Given | Refusal
    size: int = 0


async def read_all(request: DataRequest) -> list[Read]:
    """The decoded operations of a request; a refusal for each operation whose shape is wrong.

    Raises the errors of `request.given`.
    """
    has_limits = request.caller.allowance is not None
    if request.is_large:
        found = await request.each(Bulk, Given)
        return [Read(number, one, size if has_limits else 0) for number, (one, size) in enumerate(found)]
    if not has_limits:
        with contextlib.suppress(Refusal):
            return [Read(number, one) for number, one in enumerate(request.decode(Operations).operations)]
    # Each item is decoded separately, so that an invalid item does not affect the others.
    raws = [bytes(raw) for raw in request.decode(Bulk).operations]
    return [Read(number, _read(request, raw), len(raw)) for number, raw in enumerate(raws)]


def _read(request: DataRequest, raw: bytes) -> Given | Refusal:
    try:
        return request.decode(Given, raw)  # type: ignore[arg-type]  # a union of structs is a shape too
    except Refusal as refusal:
        return refusal


def ids_of(given: Given | Refusal) -> Sequence[uuid.UUID | None]:
    """The ids that an operation names; None in place of an id that it does not name."""
    return () if isinstance(given, Refusal) else CALLS[type(given)].ids(given)


def operation_of(read: Read, shared: Source) -> tuple[Call[Any, Any], Any]:
    """The call and the operation of a decoded item; raises the refusal if decoding gave a refusal. `shared` is the
    source of an item without its own trace context and size.
    """
    given = read.given
    if isinstance(given, Refusal):
        raise given
    of, own = CALLS[type(given)], given.traceparent if isinstance(given, TRACED) else None
    source = shared._replace(traceparent=own or shared.traceparent, size=read.size) if own or read.size else shared
    return of.call, of.make(given, source)
