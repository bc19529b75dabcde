"""The calls of a producer."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TypedDict
from uuid import UUID

from mqbroker_client.core import tracing
from mqbroker_client.core.calls import Call, Operation, call, path, same
from mqbroker_client.core.compression import Compression
from mqbroker_client.core.documents import Document, encoded, given, in_utf8
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.hooks import HookContext
from mqbroker_client.core.messages import Message
from mqbroker_client.core.results import Begun, Ended, Sent
from mqbroker_client.core.states import LocalTransactionState

SEND = Operation(b'{"op":"send",')


def send(message: Message, compression: Compression | None = None) -> Call[Sent]:
    """POST /v1/messages."""
    traceparent = message.traceparent or tracing.current()
    context = HookContext("send", topic=message.topic, messages=(message,), traceparent=traceparent)
    return call(
        "POST",
        "/v1/messages",
        message.document(compression),
        Sent.read,
        operation=SEND,
        traceparent=traceparent,
        context=context,
    )


def send_batch(topic: str, messages: Sequence[Message], compression: Compression | None = None) -> Call[list[Sent]]:
    """POST /v1/messages/batch."""
    body = {"topic": topic, "messages": [message.document(compression) for message in messages]}
    traceparent = _traceparent(messages)
    context = HookContext("send", topic=topic, messages=messages, traceparent=traceparent)
    return call("POST", "/v1/messages/batch", body, _all_sent, traceparent=traceparent, context=context)


def begin(
    group: str,
    messages: Sequence[Message],
    transaction_id: UUID,
    *,
    check_immunity_seconds: float | None = None,
    check_url: str | None = None,
    compression: Compression | None = None,
) -> Call[Begun]:
    """POST /v1/transactions."""
    documents = [message.document(compression) for message in messages]
    body = {
        **(documents[0] if len(documents) == 1 else {"messages": documents}),
        "producer_group": group,
        "transaction_id": str(transaction_id),
        **given(check_immunity_seconds=check_immunity_seconds, check_url=check_url),
    }
    half = Operation(b'{"op":"half",', transaction_id)
    traceparent = _traceparent(messages)
    context = HookContext(
        "begin", group, messages[0].topic if messages else None, messages, transaction_id, traceparent=traceparent
    )
    return call(
        "POST",
        "/v1/transactions",
        body,
        _begun(transaction_id, messages),
        operation=half,
        traceparent=traceparent,
        context=context,
    )


class EndFields(TypedDict, total=False):
    """The optional arguments of an end."""

    from_transaction_check: bool
    commit_log_offset: int | None
    remark: str | None
    topic: str | None


def end(
    group: str,
    transaction_id: UUID,
    state: LocalTransactionState,
    *,
    from_transaction_check: bool = False,
    commit_log_offset: int | None = None,
    remark: str | None = None,
    topic: str | None = None,
) -> Call[Ended]:
    """POST /v1/transactions/{transaction_id}/end."""
    own_id = str(transaction_id)
    end = Operation(b'{"op":"end","transaction_id":"%s",' % own_id.encode(), transaction_id)
    content = _plain_end(group, state, from_transaction_check, topic)
    if commit_log_offset is not None or remark is not None:
        more = given(commit_log_offset=commit_log_offset, remark=in_utf8(remark))
        content = content[:-1] + b"," + encoded(more).encode()[1:]
    context = HookContext("end", group, topic, transaction_id=transaction_id, state=state)
    return Call("POST", f"/v1/transactions/{own_id}/end", content, Ended.read, operation=end, context=context)


@lru_cache(maxsize=256)
def _plain_end(group: str, state: LocalTransactionState, from_transaction_check: bool, topic: str | None) -> bytes:
    """The part of an end's JSON that all ends of one producer group and topic have in common, encoded only once."""
    body = {"producer_group": group, "state": state.value, "from_transaction_check": from_transaction_check}
    return encoded({**body, **given(topic=topic)}).encode()


def transaction(transaction_id: UUID) -> Call[Document]:
    """GET /v1/transactions/{transaction_id}."""
    return call("GET", path("transactions", transaction_id), None, same)


def recall(recall_handle: str) -> Call[Document]:
    """POST /v1/messages/recall."""
    return call("POST", path("messages", "recall"), {"recall_handle": recall_handle}, same)


def receive_checks(group: str, max_transactions: int, wait_seconds: float) -> Call[list[HalfMessage]]:
    """POST /v1/producer-groups/{group}/checks/receive."""
    return call(
        "POST",
        path("producer-groups", group, "checks", "receive"),
        {"max_transactions": max_transactions, "wait_seconds": wait_seconds},
        lambda answer: [HalfMessage.read(entry, group) for entry in answer["transactions"]],
        wait_seconds=wait_seconds,
    )


def _all_sent(answer: Document) -> list[Sent]:
    return [Sent.read(result) for result in answer["results"]]


def _traceparent(messages: Sequence[Message]) -> str | None:
    """The trace context for all messages of a call: of the first message with a trace context, else the caller's."""
    for message in messages:
        if message.traceparent:
            return message.traceparent
    return tracing.current()


def _begun(transaction_id: UUID, messages: Sequence[Message]) -> Callable[[Document], Begun]:
    def read(answer: Document) -> Begun:
        next_check_at = answer.get("next_check_at")
        return Begun(
            transaction_id,
            messages,
            answer["commit_log_offset"],
            datetime.fromisoformat(next_check_at) if next_check_at else None,
            answer.get("duplicate", False),
            answer.get("state", "PREPARED"),
            answer.get("cell"),
        )

    return read
