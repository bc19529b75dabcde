"""The producer's calls: send, end of a transaction, recall."""

import uuid
from collections.abc import Sequence

from google.protobuf.duration_pb2 import Duration

from mqbroker.api.producers import require_topic_of
from mqbroker.rocketmq import messages, statuses, times
from mqbroker.rocketmq.beginners import beginners
from mqbroker.rocketmq.call import Call, kept
from mqbroker.rocketmq.messages import BatchedBytes, GivenBytes, HalfOfBytes
from mqbroker.rocketmq.protocol.definition_pb2 import Code, Message, MessageType, TransactionSource
from mqbroker.rocketmq.protocol.service_pb2 import (
    EndTransactionRequest,
    EndTransactionResponse,
    RecallMessageRequest,
    RecallMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
    SendResultEntry,
)
from mqbroker.rocketmq.statuses import OK, Refused
from mqbroker.rocketmq.streams import streams
from scheduling import recalls
from scheduling.sending.batches import MAX_MESSAGES, SendBatch
from scheduling.sending.results import Sent
from scheduling.sending.send import Send
from store.errors import MessageIdReused, MessageTooLarge
from store.naming import topics
from store.process.configuration import setting
from transactions import GivenState, groups
from transactions.operations.begin import Begin
from transactions.operations.end import End, EndTransaction

STATES: dict[int, GivenState] = {0: "UNKNOWN", 1: "COMMIT", 2: "ROLLBACK"}


async def send(call: Call, request: SendMessageRequest) -> SendMessageResponse:
    """SendMessage: stores one message, a half message, or several messages together."""
    given = request.messages
    if not given:
        raise Refused(Code.MESSAGE_CORRUPTED, "The request has no message: send at least one.")
    if len(given) > MAX_MESSAGES:
        raise Refused(Code.MESSAGE_CORRUPTED, f"The request has {len(given)} messages, the limit is {MAX_MESSAGES}.")
    named = given[0].topic.name
    topic = call.whole(named)
    if len(given) > 1:
        if any(one.topic.name != named for one in given):
            raise Refused(Code.MESSAGE_CORRUPTED, "The messages of one request have one topic: send the others apart.")
        entries = await _send_together(call, given, topic, request.ByteSize())
    elif given[0].system_properties.message_type == MessageType.TRANSACTION:
        entries = [await _begin(call, given[0], topic, request.ByteSize())]
    else:
        entries = [await _send_one(call, given[0], topic, request.ByteSize())]
    return SendMessageResponse(status=OK, entries=entries)


async def _send_one(call: Call, given: Message, topic: str, size: int) -> SendResultEntry:
    message = GivenBytes(**await messages.fields_of(given, topic))
    traceparent = messages.traceparent_of(given)
    try:
        [sent] = await call.run(Send(message, traceparent, call.caller, size))
    except MessageIdReused:
        # Clients make the ids. If another message has this id, this message gets a new id.
        message.message_id = None
        [sent] = await call.run(Send(message, traceparent, call.caller, size))
    return _entry(sent)


async def _send_together(call: Call, given: Sequence[Message], topic: str, size: int) -> list[SendResultEntry]:
    if any(one.system_properties.message_type == MessageType.TRANSACTION for one in given):
        raise Refused(Code.MESSAGE_CORRUPTED, "Half messages are not sent together: send each by itself.")
    fields, size_of_bodies = [], 0
    for one in given:
        fields.append(await messages.fields_of(one, topic))
        size_of_bodies += len(fields[-1]["body_bytes"])
        # Each body may decompress to a message of the maximum size; beyond the limit, no more are decompressed.
        if size_of_bodies > (limit := setting("MAX_MESSAGE_BYTES")):
            raise MessageTooLarge(f"The bodies have more than {limit} bytes together, the limit.")
    batch = SendBatch(topic=topic, messages=[BatchedBytes(**one) for one in fields])
    sent = await call.run(Send(batch, messages.traceparent_of(given[0]), call.caller, size))
    return [_entry(one) for one in sent]


def _entry(sent: Sent) -> SendResultEntry:
    return SendResultEntry(
        status=OK,
        message_id=messages.text_of(sent.message_id),
        offset=sent.queue_offset or 0,
        recall_handle=sent.recall_handle if isinstance(sent.recall_handle, str) else "",
    )


async def _begin(call: Call, given: Message, topic: str, size: int) -> SendResultEntry:
    """Begins a transaction. Its id is the message's id, and its producer group has the topic's name."""
    fields = await messages.fields_of(given, topic)
    call.caller.require("produce", topic)
    if groups.known(topic) is None:
        await kept(_make_group(topic))
    system = given.system_properties
    if system.HasField("orphaned_transaction_recovery_duration"):
        fields["check_immunity_seconds"] = _immunity(system.orphaned_transaction_recovery_duration)
    streams().produces(call.client, topic)
    traceparent = messages.traceparent_of(given)
    half = HalfOfBytes(producer_group=topic, transaction_id=fields["message_id"], **fields)
    try:
        begun = await call.run(Begin(half, traceparent, call.caller, size))
    except MessageIdReused:
        half.transaction_id = half.message_id = None
        begun = await call.run(Begin(half, traceparent, call.caller, size))
    beginners().keep(begun.transaction_id, call.caller.name)
    message_id, transaction_id = messages.text_of(begun.message_id), str(begun.transaction_id)
    return SendResultEntry(status=OK, message_id=message_id, transaction_id=transaction_id)


def _immunity(given: Duration) -> float:
    """The time before the first check. Raises Refused for a duration below zero or above 10,000 years."""
    name = "orphaned_transaction_recovery_duration"
    seconds = times.seconds_of(name, given)
    if seconds < 0:
        raise Refused(Code.BAD_REQUEST, f"{name} of {seconds:g} s is below zero: give 0 s or more.")
    return seconds


async def _make_group(topic: str) -> None:
    await topics.for_sending(topic)
    await groups.of_topic(topic)


async def end(call: Call, request: EndTransactionRequest) -> EndTransactionResponse:
    """EndTransaction: the first decision wins; UNKNOWN means that the client cannot decide yet."""
    topic = call.whole(request.topic.name)
    if (state := STATES.get(request.resolution)) is None:
        raise Refused(Code.BAD_REQUEST, f"resolution {request.resolution} is none: give COMMIT or ROLLBACK.")
    given = EndTransaction(
        producer_group=topic,
        state=state,
        from_transaction_check=request.source == TransactionSource.SOURCE_SERVER_CHECK,
        topic=topic,
    )
    try:
        transaction_id = uuid.UUID(request.transaction_id)
    except ValueError as problem:
        detail = f"The transaction id {request.transaction_id[:60]!r} is none: give that of the answer to its message."
        raise Refused(Code.INVALID_TRANSACTION_ID, detail) from problem
    await call.run(End.of_producer(transaction_id, given, call.caller))
    if given.state != "UNKNOWN":
        beginners().forget(transaction_id)
    return EndTransactionResponse(status=OK)


async def recall(call: Call, request: RecallMessageRequest) -> RecallMessageResponse:
    """RecallMessage: takes a delayed message back before its release."""
    call.caller.require("produce", call.whole(request.topic.name))
    message_id = recalls.message_of(request.recall_handle)
    await require_topic_of(call.caller, message_id)
    await kept(recalls.recall(request.recall_handle))
    return RecallMessageResponse(status=statuses.OK, message_id=messages.text_of(message_id))
