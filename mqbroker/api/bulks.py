"""Bulk: many calls in one request, in order, each answered by itself. SDKs coalesce calls with it."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import structlog

from access.callers import Caller
from mqbroker.api import operations
from mqbroker.api.answers import Answer, failed, refused, with_status
from mqbroker.api.operations import Call, rest_of
from mqbroker.api.receipts import AckDeliveries
from mqbroker.api.requests import MAX_TRACEPARENT, DataRequest, decode
from scheduling import delays
from store import messages
from store.commit import writer
from store.commit.operation import Operation
from store.db import patience
from store.errors import MessageIllegal, Refusal, SystemBusy
from store.messages import Message, accept
from store.naming import topics
from transactions import limits
from transactions.operations.end import EndTransaction
from transactions.operations.validation import BeginTransaction

logger = structlog.stdlib.get_logger(__name__)

MAX_OPERATIONS = 1000
# Of the scopes of a key, of which a bulk needs one; each operation needs what its call needs.
VERBS = ("produce", "consume", "manage")
TOO_LATE = msgspec.Raw(refused(SystemBusy("The database does not answer: nothing was stored, try again.")).content)

# An operation's own, where many callers share a request; else the request's header. W3C's has 55 characters; as in a
# header, none is a control character.
Traceparent = Annotated[str, msgspec.Meta(max_length=MAX_TRACEPARENT, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Bulk(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The operations of a bulk request, each still to be read."""

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


class Of(NamedTuple):
    """An operation of a bulk: the call that it stands for, the call's parameters of the path, and the ids it names."""

    call: Call[Any, Any]
    named: Callable[[Any], dict[str, object]]
    ids: Callable[[Any], Sequence[uuid.UUID | None]]


def _nothing(given: object) -> dict[str, object]:
    return {}


CALLS: dict[type[Given], Of] = {
    SendOperation: Of(operations.SEND, _nothing, lambda given: (given.message_id,)),
    HalfOperation: Of(
        operations.BEGIN,
        _nothing,
        lambda given: (given.transaction_id, *(message.message_id for message in given.given)),
    ),
    EndOperation: Of(
        operations.END, lambda given: {"transaction_id": given.transaction_id}, lambda given: (given.transaction_id,)
    ),
    AckOperation: Of(operations.ACK, lambda given: {"group": given.group}, lambda given: ()),
}


class Operations(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The operations of a bulk request in which each is well-formed."""

    operations: list[Given]


class Source(NamedTuple):
    """Where an operation of a bulk comes from, as of a call by itself."""

    caller: Caller
    traceparent: str | None
    size: int


class Read(NamedTuple):
    """What is given of an operation with its place in the request, and its bytes where the caller's key has limits."""

    place: int
    given: Given | Refusal
    size: int = 0


async def bulk(request: DataRequest) -> Answer:
    """POST /v1/bulk."""
    # Asked here, too: whether its body comes in one piece with its head decides nothing.
    request.caller.require_any(*VERBS)
    return Answer(b'{"results":[%s]}' % b",".join(map(bytes, await _results(request))))


async def _results(request: DataRequest) -> list[msgspec.Raw]:
    """The result of each operation, in their order.

    Two operations that name one id keep their order: the half is stored before its end is decided, and of two messages
    with one id the first is stored. Raises MessageIllegal when there are none or too many.
    """
    read = _read_all(request)
    if not 1 <= len(read) <= MAX_OPERATIONS:
        raise MessageIllegal(f"operations has {len(read)} operations: give 1 to {MAX_OPERATIONS}.")
    until = time.monotonic() + patience.REQUEST_SECONDS
    await _warm([one.given for one in read], request.caller)
    results: dict[int, msgspec.Raw] = {}
    left: Sequence[Read] = read
    while left and not patience.current().is_over and time.monotonic() < until:
        now, left = _apart(left)
        results |= await _run(now, request)
    return [results.get(place, TOO_LATE) for place in range(len(read))]


def _read_all(request: DataRequest) -> list[Read]:
    if request.caller.allowance is None:
        with contextlib.suppress(Refusal):
            return [Read(place, one) for place, one in enumerate(decode(Operations, request.body).operations)]
    # Each is judged on its own.
    raws = decode(Bulk, request.body).operations
    return [Read(place, _read(raw), len(bytes(raw))) for place, raw in enumerate(raws)]


def _read(raw: msgspec.Raw) -> Given | Refusal:
    try:
        return decode(Given, bytes(raw))  # type: ignore[arg-type]  # a union is a shape too
    except Refusal as refusal:
        return refusal


async def _warm(given: list[Given | Refusal], caller: Caller) -> None:
    """Reads topics and groups beforehand: then almost no operation waits for them, and they reach the group commit in
    order.

    Of sends only those that the caller may produce to: the first use makes a topic that does not exist. What breaks a
    rule makes none.
    """
    of_messages = [one for one in given if isinstance(one, SendOperation | HalfOperation)]
    for name in {operation.topic for operation in of_messages}:
        await topics.look_up(name)
    sent_to: set[str] = set()
    for operation in given:
        if isinstance(operation, SendOperation) and operation.topic not in sent_to and _obeys(operation, caller):
            sent_to.add(operation.topic)
            with contextlib.suppress(Refusal):
                chosen = [] if operation.message_id is None else [operation.message_id]
                await accept.for_messages(operation.topic, None, chosen)
    of_groups = [one for one in given if isinstance(one, HalfOperation | EndOperation)]
    for name in {operation.producer_group for operation in of_groups}:
        with contextlib.suppress(Refusal):
            await limits.look_up(name)


def _obeys(operation: SendOperation, caller: Caller) -> bool:
    """Whether a send is sure to obey the rules; one to a queue or with a delay has to be looked at with its topic."""
    if operation.queue_id is not None or not caller.may("produce", operation.topic):
        return False
    try:
        messages.checked(operation)
    except Refusal:
        return False
    return delays.of_message(operation) is None


def _apart(read: Sequence[Read]) -> tuple[list[Read], list[Read]]:
    """The operations that name no id of an earlier one, and the rest, which has to wait for them."""
    seen: set[uuid.UUID | None] = set()
    now: list[Read] = []
    later: list[Read] = []
    for one in read:
        ids = () if isinstance(one.given, Refusal) else CALLS[type(one.given)].ids(one.given)
        (now if seen.isdisjoint(ids) else later).append(one)
        seen.update(ids)
        seen.discard(None)
    return now, later


async def _run(read: list[Read], request: DataRequest) -> dict[int, msgspec.Raw]:
    """The results of operations that need not wait for each other, by their places.

    What a pipelined batch takes is handed in at once: a task for each would cost as much as its part of the batch.
    """
    results: dict[int, msgspec.Raw] = {}
    handed: list[tuple[int, Call[Any, Any], Operation[Any]]] = []
    tasks: list[tuple[int, asyncio.Task[msgspec.Raw]]] = []
    for one in read:
        try:
            call, operation = _operation_of(one, request)
            is_ready = operation.ready()
            if is_ready and not operation.ordered:
                writer.hand_in(operation)
                handed.append((one.place, call, operation))
            else:
                # Those that keep an order hand themselves in.
                rest = rest_of(operation, is_ready=is_ready)
                tasks.append((one.place, asyncio.create_task(_result(call, operation, rest))))
        except Refusal as refusal:
            results[one.place] = _refused(refusal)
    for place, call, operation in handed:
        found = await _settled(call, operation)
        if found is None:
            tasks.append((place, asyncio.create_task(_result(call, operation, writer.finish(operation)))))
        else:
            results[place] = found
    for place, task in tasks:
        results[place] = await task
    return results


def _operation_of(read: Read, request: DataRequest) -> tuple[Call[Any, Any], Operation[Any]]:
    """Raises the refusal that it is."""
    given = read.given
    if isinstance(given, Refusal):
        raise given
    of = CALLS[type(given)]
    traceparent = getattr(given, "traceparent", None) or request.traceparent
    return of.call, of.call.make(given, Source(request.caller, traceparent, read.size), **of.named(given))


async def _settled(call: Call[Any, Any], operation: Operation[Any]) -> msgspec.Raw | None:
    """The result of an operation that was handed in; None when its batch left it out."""
    try:
        return None if await operation.future is None else _answered(call, operation)
    except Refusal as refusal:
        return _refused(refusal)
    except Exception:
        logger.exception("an operation of a bulk failed")
        return msgspec.Raw(failed().content)


async def _result(call: Call[Any, Any], operation: Operation[Any], rest: Coroutine[Any, Any, object]) -> msgspec.Raw:
    """The result of an operation once the rest of its way is behind it."""
    try:
        await rest
        return _answered(call, operation)
    except Refusal as refusal:
        return _refused(refusal)
    except Exception:
        logger.exception("an operation of a bulk failed")
        return msgspec.Raw(failed().content)


def _answered(call: Call[Any, Any], operation: Operation[Any]) -> msgspec.Raw:
    return with_status(*call.answered(operation))


def _refused(refusal: Refusal) -> msgspec.Raw:
    return msgspec.Raw(refused(refusal).content)
