"""The calls of a consumer."""

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from mqbroker_client.core import tracing
from mqbroker_client.core.calls import Call, Operation, call, path
from mqbroker_client.core.compression import Compression
from mqbroker_client.core.documents import Document, given, in_utf8
from mqbroker_client.core.hooks import HookContext
from mqbroker_client.core.messages import Delivery, Message
from mqbroker_client.core.results import Page, Received, Sent, Settled


def receive(
    group: str,
    topic: str,
    *,
    max_messages: int,
    wait_seconds: float,
    invisible_seconds: float | None = None,
    filter: str | Mapping[str, str] | None = None,
    ack: Sequence[str] = (),
) -> Call[Received]:
    """POST /v1/consumer-groups/{group}/receive."""
    body: Document = {"topic": topic, "max_messages": max_messages, "wait_seconds": wait_seconds}
    return call(
        "POST",
        path("consumer-groups", group, "receive"),
        body | given(invisible_seconds=invisible_seconds, filter=filter, ack=list(ack) or None),
        _received,
        wait_seconds=wait_seconds,
        context=HookContext("receive", group, topic, receipt_handles=ack),
    )


def ack(group: str, receipt_handles: Sequence[str]) -> Call[list[Settled]]:
    """POST /v1/consumer-groups/{group}/ack."""
    return _settle(group, "ack", receipt_handles, {}, _acks(group))


def forward(
    group: str, receipt_handles: Sequence[str], messages: Sequence[Message], compression: Compression | None = None
) -> Call[list[Sent]]:
    """POST /v1/consumer-groups/{group}/ack with messages to send in the same write."""
    body = {"receipt_handles": receipt_handles, "messages": [message.document(compression) for message in messages]}
    traceparent = tracing.current()
    return call(
        "POST",
        path("consumer-groups", group, "ack"),
        body,
        lambda answer: [Sent.read(sent) for sent in answer["messages"]],
        operation=_acks(group),
        traceparent=traceparent,
        context=HookContext("ack", group, None, messages, receipt_handles=receipt_handles, traceparent=traceparent),
    )


def nack(
    group: str, receipt_handles: Sequence[str], *, delay_seconds: float | None = None, reason: str | None = None
) -> Call[list[Settled]]:
    """POST /v1/consumer-groups/{group}/nack."""
    return _settle(group, "nack", receipt_handles, given(delay_seconds=delay_seconds, reason=in_utf8(reason)))


def give_back(group: str, receipt_handles: Sequence[str]) -> Call[list[Settled]]:
    """POST /v1/consumer-groups/{group}/return."""
    return _settle(group, "return", receipt_handles, {})


def extend(group: str, receipt_handles: Sequence[str], invisible_seconds: float) -> Call[list[Settled]]:
    """POST /v1/consumer-groups/{group}/extend."""
    return _settle(group, "extend", receipt_handles, {"invisible_seconds": invisible_seconds})


def pull(topic: str, queue_id: int, offset: int, limit: int, wait_seconds: float) -> Call[Page]:
    """GET /v1/topics/{topic}/queues/{queue_id}/messages."""
    return call(
        "GET",
        path("topics", topic, "queues", queue_id, "messages"),
        None,
        Page.read,
        query={"offset": offset, "max": limit, "wait_seconds": wait_seconds},
        wait_seconds=wait_seconds,
    )


def is_ordered(group: str) -> Call[bool]:
    """GET /v1/consumer-groups/{group}."""
    return call("GET", path("consumer-groups", group), None, lambda answer: bool(answer["ordered"]))


def _acks(group: str) -> Operation:
    return Operation(b'{"op":"ack","group":%s,' % json.dumps(group).encode())


def _settle(
    group: str,
    verb: Literal["ack", "nack", "return", "extend"],
    receipt_handles: Sequence[str],
    more: Document,
    operation: Operation | None = None,
) -> Call[list[Settled]]:
    body = {"receipt_handles": receipt_handles} | more
    context = HookContext(verb, group, receipt_handles=receipt_handles)
    return call("POST", path("consumer-groups", group, verb), body, _settled, operation=operation, context=context)


def _received(answer: Document) -> Received:
    acked = [Settled(result["receipt_handle"], result["status"]) for result in answer.get("acked", ())]
    return Received([Delivery.read(entry) for entry in answer["messages"]], acked)


def _settled(answer: Document) -> list[Settled]:
    return [Settled(result["receipt_handle"], result["status"]) for result in answer["results"]]
