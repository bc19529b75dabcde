"""Bulk: many calls in one request, in order, each judged on its own. What SDKs use to coalesce calls."""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable
from typing import Any, ClassVar

import msgspec
import structlog

from delivery import receipts
from mqbroker import errors
from mqbroker.access import Caller
from mqbroker.api import producers
from mqbroker.api.asgi_handler import DataRequest, decode
from mqbroker.api.consumers import AckDeliveries, results_of
from scheduling import sends
from store import topics
from store.errors import MessageIllegal, Refusal
from store.messages import Message
from transactions import ends, halves
from transactions.ends import EndTransaction
from transactions.halves import BeginTransaction

logger = structlog.stdlib.get_logger(__name__)

MAX_OPERATIONS = 1000


class Bulk(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The operations of a bulk request, each still to be read."""

    operations: list[msgspec.Raw]


class SendOperation(Message, kw_only=True, tag_field="op", tag="send", forbid_unknown_fields=True):
    """POST /v1/messages within a bulk."""

    transaction_id: ClassVar[None] = None

    async def run(self, caller: Caller, traceparent: str | None) -> dict[str, Any]:
        caller.require("produce", self.topic)
        result = await sends.send(self, traceparent)
        return {"status": producers.status_of(result), **result}


class HalfOperation(BeginTransaction, kw_only=True, tag_field="op", tag="half", forbid_unknown_fields=True):
    """POST /v1/transactions within a bulk."""

    async def run(self, caller: Caller, traceparent: str | None) -> dict[str, Any]:
        for topic in halves.topics_of(self):
            caller.require("produce", topic)
        result = await halves.begin(self, traceparent)
        return {"status": producers.status_of(result), **result}


class EndOperation(EndTransaction, kw_only=True, tag_field="op", tag="end", forbid_unknown_fields=True):
    """POST /v1/transactions/{transaction_id}/end within a bulk."""

    transaction_id: uuid.UUID

    async def run(self, caller: Caller, traceparent: str | None) -> dict[str, Any]:
        await producers.require_topics(caller, self.transaction_id)
        result = await ends.end(self.transaction_id, self)
        return {"status": 202 if self.state == "UNKNOWN" else 200, **result}


class AckOperation(AckDeliveries, kw_only=True, tag_field="op", tag="ack", forbid_unknown_fields=True):
    """POST /v1/consumer-groups/{group}/ack within a bulk."""

    transaction_id: ClassVar[None] = None
    group: str

    async def run(self, caller: Caller, traceparent: str | None) -> dict[str, Any]:
        caller.require("consume", self.group)
        outcomes = await receipts.ack(self.group, self.receipt_handles)
        return {"status": 200, **results_of(self.receipt_handles, outcomes)}


Operation = SendOperation | HalfOperation | EndOperation | AckOperation


async def run(request: DataRequest) -> list[dict[str, Any]]:
    """The results of a bulk request's operations, in their order.

    Raises MessageIllegal when there are none or too many.
    """
    raws = decode(Bulk, request.body).operations
    if not 1 <= len(raws) <= MAX_OPERATIONS:
        raise MessageIllegal(f"operations has {len(raws)} operations: give 1 to {MAX_OPERATIONS}.")
    operations = [_read(raw) for raw in raws]
    await _warm(operations, request.caller)
    earlier: dict[uuid.UUID, asyncio.Task[dict[str, Any]]] = {}
    tasks = []
    for operation in operations:
        # Two operations on one transaction keep their order: the half is stored before its end is judged.
        transaction_id = None if isinstance(operation, Refusal) else operation.transaction_id
        before = earlier.get(transaction_id) if transaction_id is not None else None
        task = asyncio.create_task(_judge(operation, request, before))
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
    """Looks topics up beforehand: then no send waits for its topic, and they reach the group commit in order.

    Only what the caller may produce to: a look-up makes a topic that does not exist.
    """
    for name in {operation.topic for operation in operations if isinstance(operation, SendOperation)}:
        if caller.may("produce", name):
            with contextlib.suppress(Refusal):
                await topics.for_sending(name)


async def _judge(
    operation: Operation | Refusal, request: DataRequest, before: Awaitable[dict[str, Any]] | None
) -> dict[str, Any]:
    if isinstance(operation, Refusal):
        return errors.problem(operation)
    if before is not None:
        await before
    try:
        return await operation.run(request.caller, request.header(b"traceparent"))
    except Refusal as refusal:
        return errors.problem(refusal)
    except Exception:
        logger.exception("an operation of a bulk failed")
        return errors.refusal_of_status(500, "The broker failed: its log has the details.")
