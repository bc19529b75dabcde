"""Bulk: many calls in one request, in order, each answered by itself. SDKs coalesce calls with it."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import structlog

from delivery import receipts
from mqbroker.access import Caller
from mqbroker.api import producers
from mqbroker.api.answers import Answer, failed, refused, with_status
from mqbroker.api.consumers import AckDeliveries, results_of
from mqbroker.api.requests import MAX_TRACEPARENT, DataRequest, decode
from scheduling import delays
from sending import sends
from sending.pipelined import Sending
from store import messages
from store.commit import writer
from store.commit.pipelined import Request
from store.db import patience
from store.errors import MessageIllegal, Refusal, SystemBusy
from store.messages import Message, accept
from store.naming import topics
from transactions import ends, halves
from transactions.ends import EndTransaction
from transactions.halves import BeginTransaction
from transactions.writing.pipelined import Beginning, Ending

logger = structlog.stdlib.get_logger(__name__)

MAX_OPERATIONS = 1000
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

    @property
    def ids(self) -> Sequence[uuid.UUID | None]:
        return (self.message_id,)

    def ready(self, caller: Caller, traceparent: str | None) -> Sending | None:
        caller.require("produce", self.topic)
        # Those with a key keep their order on whichever way they go: each hands itself in.
        if caller.allowance is not None or self.sharding_key is not None:
            return None
        return sends.ready(self, self.traceparent or traceparent)

    def result(self, sending: Sending) -> msgspec.Raw:
        assert sending.answer is not None
        return with_status(201, sending.answer[0])

    async def run(
        self, caller: Caller, traceparent: str | None, size: int, *, left_out: Request[Any] | None
    ) -> msgspec.Raw:
        assert left_out is None or isinstance(left_out, Sending)
        caller.require("produce", self.topic)
        caller.spend(1, size)
        result = await sends.send(self, self.traceparent or traceparent, left_out=left_out)
        return with_status(producers.status_of(result), result)


class HalfOperation(BeginTransaction, kw_only=True, tag_field="op", tag="half", forbid_unknown_fields=True):
    """POST /v1/transactions within a bulk."""

    traceparent: Traceparent | None = None

    @property
    def ids(self) -> Sequence[uuid.UUID | None]:
        return (self.transaction_id, *(message.message_id for message in self.messages or (self,)))

    def ready(self, caller: Caller, traceparent: str | None) -> Beginning | None:
        for topic in halves.topics_of(self):
            caller.require("produce", topic)
        is_allowed = caller.allowance is None and producers.is_known_to_allow(caller, self.producer_group)
        return halves.ready(self, self.traceparent or traceparent) if is_allowed else None

    def result(self, beginning: Beginning) -> msgspec.Raw:
        assert beginning.answer is not None
        return with_status(201, halves.answer_to(beginning, beginning.answer))

    async def run(
        self, caller: Caller, traceparent: str | None, size: int, *, left_out: Request[Any] | None
    ) -> msgspec.Raw:
        for topic in halves.topics_of(self):
            caller.require("produce", topic)
        given = self.traceparent or traceparent
        result = await producers.begin_for(caller, self, given, size, left_out=left_out is not None)
        return with_status(producers.status_of(result), result)


class EndOperation(EndTransaction, kw_only=True, tag_field="op", tag="end", forbid_unknown_fields=True):
    """POST /v1/transactions/{transaction_id}/end within a bulk."""

    transaction_id: uuid.UUID

    @property
    def ids(self) -> Sequence[uuid.UUID | None]:
        return (self.transaction_id,)

    def ready(self, caller: Caller, traceparent: str | None) -> Ending | None:
        is_allowed = caller.may_everywhere("produce") and producers.is_known_to_allow(caller, self.producer_group)
        return ends.ready(self.transaction_id, self) if is_allowed else None

    def result(self, ending: Ending) -> msgspec.Raw:
        assert ending.answer is not None
        return with_status(200, ends.answer_to(ending, ending.answer))

    async def run(
        self, caller: Caller, traceparent: str | None, size: int, *, left_out: Request[Any] | None
    ) -> msgspec.Raw:
        await producers.require_end(caller, self.transaction_id, self)
        result = await ends.end(self.transaction_id, self, left_out=left_out is not None)
        return with_status(producers.status_of_end(self), result)


class AckOperation(AckDeliveries, kw_only=True, tag_field="op", tag="ack", forbid_unknown_fields=True):
    """POST /v1/consumer-groups/{group}/ack within a bulk."""

    ids: ClassVar[Sequence[uuid.UUID | None]] = ()
    group: str

    def ready(self, caller: Caller, traceparent: str | None) -> None:
        """Deliveries are acked in batches of their own."""

    async def run(
        self, caller: Caller, traceparent: str | None, size: int, *, left_out: Request[Any] | None
    ) -> msgspec.Raw:
        caller.require("consume", self.group)
        outcomes = await receipts.ack(self.group, self.receipt_handles)
        return with_status(200, results_of(self.receipt_handles, outcomes))


Operation = SendOperation | HalfOperation | EndOperation | AckOperation


class Operations(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The operations of a bulk request in which each is well-formed."""

    operations: list[Operation]


class Read(NamedTuple):
    """An operation with its place in the request, and its bytes where the caller's key has limits."""

    place: int
    operation: Operation | Refusal
    size: int = 0


async def bulk(request: DataRequest) -> Answer:
    """POST /v1/bulk."""
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
    await _warm([one.operation for one in read], request.caller)
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


def _read(raw: msgspec.Raw) -> Operation | Refusal:
    try:
        return decode(Operation, bytes(raw))  # type: ignore[arg-type]  # a union is a shape too
    except Refusal as refusal:
        return refusal


async def _warm(operations: list[Operation | Refusal], caller: Caller) -> None:
    """Reads topics and groups beforehand: then almost no operation waits for them, and they reach the group commit in
    order.

    Of sends only those that the caller may produce to: the first use makes a topic that does not exist. What breaks a
    rule makes none.
    """
    of_messages = [one for one in operations if isinstance(one, SendOperation | HalfOperation)]
    for name in {operation.topic for operation in of_messages}:
        await topics.look_up(name)
    sent_to: set[str] = set()
    for operation in operations:
        if isinstance(operation, SendOperation) and operation.topic not in sent_to and _obeys(operation, caller):
            sent_to.add(operation.topic)
            with contextlib.suppress(Refusal):
                chosen = [] if operation.message_id is None else [operation.message_id]
                await accept.for_messages(operation.topic, None, chosen)
    of_groups = [one for one in operations if isinstance(one, HalfOperation | EndOperation)]
    for name in {operation.producer_group for operation in of_groups}:
        with contextlib.suppress(Refusal):
            await halves.look_up_group(name)


def _obeys(operation: SendOperation, caller: Caller) -> bool:
    """Whether a send is sure to obey the rules; one to a queue or with a delay has to be looked at with its topic."""
    if operation.queue_id is not None or not caller.may("produce", operation.topic):
        return False
    try:
        messages.checked(operation)
    except Refusal:
        return False
    return delays.of_message(operation) is None


def _apart(operations: Sequence[Read]) -> tuple[list[Read], list[Read]]:
    """The operations that name no id of an earlier one, and the rest, which has to wait for them."""
    seen: set[uuid.UUID | None] = set()
    now: list[Read] = []
    later: list[Read] = []
    for one in operations:
        ids = () if isinstance(one.operation, Refusal) else one.operation.ids
        (now if seen.isdisjoint(ids) else later).append(one)
        seen.update(ids)
        seen.discard(None)
    return now, later


async def _run(operations: list[Read], request: DataRequest) -> dict[int, msgspec.Raw]:
    """The results of operations that need not wait for each other, by their places.

    What a pipelined batch takes is handed in at once: a task for each would cost as much as its part of the batch.
    """
    results: dict[int, msgspec.Raw] = {}
    handed: list[tuple[Read, Request[Any]]] = []
    tasks: list[tuple[int, asyncio.Task[msgspec.Raw]]] = []
    for one in operations:
        try:
            pipelined = _handed_in(one.operation, request)
        except Refusal as refusal:
            results[one.place] = _refused(refusal)
            continue
        if pipelined is None:
            tasks.append((one.place, asyncio.create_task(_result(one, request, left_out=None))))
        else:
            handed.append((one, pipelined))
    for one, pipelined in handed:
        found = await _settled(one.operation, pipelined)
        if found is None:
            tasks.append((one.place, asyncio.create_task(_result(one, request, left_out=pipelined))))
        else:
            results[one.place] = found
    for place, task in tasks:
        results[place] = await task
    return results


def _handed_in(operation: Operation | Refusal, request: DataRequest) -> Request[Any] | None:
    """The pipelined request of an operation; None for one that goes by itself. Raises the refusal that it is."""
    if isinstance(operation, Refusal):
        raise operation
    pipelined: Request[Any] | None = operation.ready(request.caller, request.traceparent)
    if pipelined is not None:
        writer.hand_in(pipelined)
    return pipelined


async def _settled(operation: Any, pipelined: Request[Any]) -> msgspec.Raw | None:
    """The result of an operation that was handed in; None when its batch left it out."""
    try:
        found: msgspec.Raw | None = None if await pipelined.future is None else operation.result(pipelined)
    except Refusal as refusal:
        return _refused(refusal)
    except Exception:
        logger.exception("an operation of a bulk failed")
        return msgspec.Raw(failed().content)
    return found


async def _result(read: Read, request: DataRequest, *, left_out: Request[Any] | None) -> msgspec.Raw:
    operation, traceparent = read.operation, request.traceparent
    try:
        if isinstance(operation, Refusal):
            raise operation
        return await operation.run(request.caller, traceparent, read.size, left_out=left_out)
    except Refusal as refusal:
        return _refused(refusal)
    except Exception:
        logger.exception("an operation of a bulk failed")
        return msgspec.Raw(failed().content)


def _refused(refusal: Refusal) -> msgspec.Raw:
    return msgspec.Raw(refused(refusal).content)
