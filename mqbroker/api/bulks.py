"""Bulk: many calls in one request, in order, each answered by itself. SDKs coalesce calls with it."""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable
from typing import Annotated, ClassVar

import msgspec
import structlog

from delivery import receipts
from mqbroker.access import Caller
from mqbroker.api import producers
from mqbroker.api.answers import Answer, failed, refused, with_status
from mqbroker.api.consumers import AckDeliveries, results_of
from mqbroker.api.requests import DataRequest, decode
from scheduling.sending import sends
from store import topics
from store.errors import MessageIllegal, Refusal
from store.messages import Message
from transactions import ends, halves
from transactions.ends import EndTransaction
from transactions.halves import BeginTransaction

logger = structlog.stdlib.get_logger(__name__)

MAX_OPERATIONS = 1000

# An operation's own, where many callers share a request; else the request's header. W3C's has 55 characters.
Traceparent = Annotated[str, msgspec.Meta(max_length=128)]


class Bulk(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The operations of a bulk request, each still to be read."""

    operations: list[msgspec.Raw]


class SendOperation(Message, kw_only=True, tag_field="op", tag="send", forbid_unknown_fields=True):
    """POST /v1/messages within a bulk."""

    transaction_id: ClassVar[None] = None
    traceparent: Traceparent | None = None

    async def run(self, caller: Caller, traceparent: str | None, size: int) -> msgspec.Raw:
        caller.require("produce", self.topic)
        caller.spend(1, size)
        result = await sends.send(self, self.traceparent or traceparent)
        return with_status(producers.status_of(result), result)


class HalfOperation(BeginTransaction, kw_only=True, tag_field="op", tag="half", forbid_unknown_fields=True):
    """POST /v1/transactions within a bulk."""

    traceparent: Traceparent | None = None

    async def run(self, caller: Caller, traceparent: str | None, size: int) -> msgspec.Raw:
        for topic in halves.topics_of(self):
            caller.require("produce", topic)
        await producers.require_group(caller, self.producer_group, creates=True)
        caller.spend(halves.count(self), size)
        result = await halves.begin(self, self.traceparent or traceparent, caller.allowance)
        return with_status(producers.status_of(result), result)


class EndOperation(EndTransaction, kw_only=True, tag_field="op", tag="end", forbid_unknown_fields=True):
    """POST /v1/transactions/{transaction_id}/end within a bulk."""

    transaction_id: uuid.UUID

    async def run(self, caller: Caller, traceparent: str | None, size: int) -> msgspec.Raw:
        await producers.require_topics(caller, self.transaction_id)
        await producers.require_group(caller, self.producer_group)
        result = await ends.end(self.transaction_id, self)
        return with_status(producers.status_of_end(self), result)


class AckOperation(AckDeliveries, kw_only=True, tag_field="op", tag="ack", forbid_unknown_fields=True):
    """POST /v1/consumer-groups/{group}/ack within a bulk."""

    transaction_id: ClassVar[None] = None
    group: str

    async def run(self, caller: Caller, traceparent: str | None, size: int) -> msgspec.Raw:
        caller.require("consume", self.group)
        outcomes = await receipts.ack(self.group, self.receipt_handles)
        return with_status(200, results_of(self.receipt_handles, outcomes))


Operation = SendOperation | HalfOperation | EndOperation | AckOperation


async def bulk(request: DataRequest) -> Answer:
    """POST /v1/bulk."""
    return Answer(b'{"results":[%s]}' % b",".join(map(bytes, await _results(request))))


async def _results(request: DataRequest) -> list[msgspec.Raw]:
    """The result of each operation, in their order.

    Raises MessageIllegal when there are none or too many.
    """
    raws = decode(Bulk, request.body).operations
    if not 1 <= len(raws) <= MAX_OPERATIONS:
        raise MessageIllegal(f"operations has {len(raws)} operations: give 1 to {MAX_OPERATIONS}.")
    operations = [_read(raw) for raw in raws]
    await _warm(operations, request.caller)
    earlier: dict[uuid.UUID, asyncio.Task[msgspec.Raw]] = {}
    tasks = []
    for operation, raw in zip(operations, raws, strict=True):
        # Two operations on one transaction keep their order: the half is stored before its end is decided.
        transaction_id = None if isinstance(operation, Refusal) else operation.transaction_id
        before = earlier.get(transaction_id) if transaction_id is not None else None
        task = asyncio.create_task(_result(operation, request, len(bytes(raw)), before))
        if transaction_id is not None:
            earlier[transaction_id] = task
        tasks.append(task)
    return list(await asyncio.gather(*tasks))


def _read(raw: msgspec.Raw) -> Operation | Refusal:
    try:
        return decode(Operation, bytes(raw))  # type: ignore[arg-type]  # a union is a shape too
    except Refusal as refusal:
        return refusal


async def _warm(operations: list[Operation | Refusal], caller: Caller) -> None:
    """Reads topics beforehand: then no send waits for its topic, and they reach the group commit in order.

    Only those that the caller may produce to: the first use makes a topic that does not exist.
    """
    for name in {operation.topic for operation in operations if isinstance(operation, SendOperation)}:
        if caller.may("produce", name):
            with contextlib.suppress(Refusal):
                await topics.for_sending(name)


async def _result(
    operation: Operation | Refusal, request: DataRequest, size: int, before: Awaitable[msgspec.Raw] | None
) -> msgspec.Raw:
    if isinstance(operation, Refusal):
        return _refused(operation)
    if before is not None:
        await before
    try:
        return await operation.run(request.caller, request.header(b"traceparent"), size)
    except Refusal as refusal:
        return _refused(refusal)
    except Exception:
        logger.exception("an operation of a bulk failed")
        return msgspec.Raw(failed().content)


def _refused(refusal: Refusal) -> msgspec.Raw:
    return msgspec.Raw(refused(refusal).content)
