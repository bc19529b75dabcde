"""The consumer's calls: receive, ack, change of the invisible time, dead letter, and the end of a client."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from delivery.receipts import failing, settling
from delivery.receipts.settling import Ack
from delivery.receive import receives
from delivery.receive.attempts import Attempts
from delivery.receive.deliveries import HandedOut
from delivery.receive.receives import Receive, Received
from mqbroker.rocketmq import messages, reading, statuses, times
from mqbroker.rocketmq.call import Call, begun, kept
from mqbroker.rocketmq.protocol.definition_pb2 import Code, FilterExpression, FilterType, Message, Status
from mqbroker.rocketmq.protocol.service_pb2 import (
    AckMessageRequest,
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
)
from mqbroker.rocketmq.renewals import renewals
from mqbroker.rocketmq.statuses import OK, Refused
from mqbroker.rocketmq.streams import streams
from store.errors import Refusal
from store.messages import MessageRow
from store.notices.presence import Present
from store.process import runtime
from store.process.answer_budget import Hold
from store.process.configuration import setting

# The least seconds of a long poll, and how long before the call's deadline it ends, so that its answer arrives in time.
SHORTEST_WAIT, ANSWER_SECONDS = 5.0, 0.3
# The maximum length of an attempt id; clients use a UUID.
MAX_ATTEMPT_ID = 128
NOTHING = Status(code=Code.MESSAGE_NOT_FOUND, message="No message has come.")


async def receive(call: Call, request: ReceiveMessageRequest) -> AsyncIterator[ReceiveMessageResponse]:
    """ReceiveMessage: the group's next messages of a topic, or only the status MESSAGE_NOT_FOUND.

    If the client disconnects before the last message is sent, all messages are returned to the group.
    """
    with Hold(call.caller.name) as hold:
        received = await _received(call, request, hold)
        try:
            handout = received.handout
            if handout is None or not handout.entries:
                yield ReceiveMessageResponse(status=NOTHING)
            else:
                yield ReceiveMessageResponse(status=OK)
                for handed, row in handout:
                    async with reading.unpacking(call.caller.name, row):
                        yield ReceiveMessageResponse(message=await _delivered(call, received, handed, row))
            now = Timestamp()
            now.GetCurrentTime()
            yield ReceiveMessageResponse(delivery_timestamp=now)
        except BaseException:
            call.end()
            begun(_back_from(call, request, _done(received)))
            raise


async def _done(received: Received) -> Received:
    return received


async def _received(call: Call, request: ReceiveMessageRequest, hold: Hold) -> Received:
    group, topic = call.whole(request.group.name), call.whole(request.message_queue.topic.name)
    call.caller.require_receive(group, topic)
    handing_out = begun(_hand_out(call, request, group, _wanted(call, request, topic), hold))
    try:
        received = await asyncio.shield(handing_out)
    except asyncio.CancelledError:
        call.end()
        # The receive may have finished in this turn of the event loop, and its result is lost with the cancelled call.
        begun(_back_from(call, request, handing_out))
        raise
    if request.auto_renew and received.handout is not None:
        renewals().begin(call.client, group, _handles(received))
    return received


async def _hand_out(call: Call, request: ReceiveMessageRequest, group: str, wanted: Receive, hold: Hold) -> Received:
    attempts, attempt_id = runtime.control(Attempts), _attempt_of(request)
    if attempt_id:
        again = await attempts.again(group, attempt_id, hold, call.gone)
        if again is not None:
            return again

    async def require() -> None:
        (await call.caller_now()).require_receive(group, wanted.topic)

    with runtime.control(Present).asks("consumer", group, (call.client_id, 0)):
        received = await receives.entries(group, wanted, hold, call.gone, require, again_at_once=True)
    if attempt_id:
        attempts.keep(attempt_id, received)
    # The call was cancelled while messages were handed out.
    await _given_back(call, request, received)
    return received


async def _back_from(call: Call, request: ReceiveMessageRequest, handing_out: Awaitable[Received]) -> None:
    """Returns the messages of a cancelled receive. A refusal is dropped, because no client waits for it."""
    with contextlib.suppress(Refusal):
        await _given_back(call, request, await handing_out)


async def _given_back(call: Call, request: ReceiveMessageRequest, received: Received) -> None:
    if await received.given_back(call.gone):
        renewals().end(_handles(received))
        runtime.control(Attempts).forget(call.caller.name, received.group, _attempt_of(request))


def _attempt_of(request: ReceiveMessageRequest) -> str:
    """The id of the receive attempt; empty if it is missing or too long."""
    return request.attempt_id if len(request.attempt_id) <= MAX_ATTEMPT_ID else ""


def _handles(received: Received) -> list[str]:
    handout = received.handout
    return [] if handout is None else [one.receipt_handle(handout.receiver) for one in handout.entries]


def _wanted(call: Call, request: ReceiveMessageRequest, topic: str) -> Receive:
    """The receive that the request asks for. Raises Refused for an invisible time that is not allowed."""
    seconds: float | None = None
    if not request.auto_renew and request.HasField("invisible_duration"):
        seconds = _invisible(request.invisible_duration, float(setting("MIN_INVISIBLE_SECONDS")))
    longest = float(setting("MAX_WAIT_SECONDS"))
    wait = times.seconds_of("long_polling_timeout", request.long_polling_timeout)
    wait = min(max(wait, SHORTEST_WAIT), longest, call.seconds_left() - ANSWER_SECONDS)
    return Receive(
        topic=topic,
        filter=_filter(request.filter_expression),
        max_messages=min(max(request.batch_size, 1), int(setting("MAX_RECEIVE_MESSAGES"))),
        invisible_seconds=seconds,
        wait_seconds=max(wait, 0.0),
    )


def _filter(given: FilterExpression) -> Any:
    if given.type == FilterType.SQL:
        return {"sql": given.expression}
    if given.type not in (FilterType.FILTER_TYPE_UNSPECIFIED, FilterType.TAG):
        raise Refused(Code.ILLEGAL_FILTER_EXPRESSION, f"The type of filter {given.type} is none: give TAG or SQL.")
    return given.expression or None


def _invisible(given: Duration, least: float) -> float:
    seconds = times.seconds_of("invisible_duration", given, Code.ILLEGAL_INVISIBLE_TIME)
    most = float(setting("MAX_INVISIBLE_SECONDS"))
    if not least <= seconds <= most:
        detail = f"An invisible time of {seconds:g} s cannot be used: give {least:g} to {most:g} s."
        raise Refused(Code.ILLEGAL_INVISIBLE_TIME, detail)
    return seconds


async def _delivered(call: Call, received: Received, handed: HandedOut, row: MessageRow) -> Message:
    assert received.handout is not None
    receiver = received.handout.receiver
    message = await messages.answered(row, call.shown(receiver.topic.name))
    system = message.system_properties
    system.queue_id, system.queue_offset = handed.queue[1], handed.queue_offset
    system.receipt_handle = handed.receipt_handle(receiver)
    system.delivery_attempt = handed.reconsume_times + 1
    system.invisible_duration.FromMicroseconds(round(receiver.invisible_seconds * 1e6))
    if receiver.of_dead_letters and handed.died_after is not None:
        origin = call.shown(received.origins[row.topic_id])
        system.dead_letter_queue.CopyFrom(messages.dead_letter_of(row, origin))
    return message


async def ack(call: Call, request: AckMessageRequest) -> AckMessageResponse:
    """AckMessage: acks each delivery whose receipt handle is valid."""
    group = call.whole(request.group.name)
    handles = [entry.receipt_handle for entry in request.entries]
    operation = Ack(group, handles, call.caller)
    await call.run(operation)
    renewals().end(handles)
    found = [_status(refusal) for refusal in operation.outcomes()]
    entries = [
        AckMessageResultEntry(message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=status)
        for entry, status in zip(request.entries, found, strict=True)
    ]
    return AckMessageResponse(status=statuses.together(found), entries=entries)


async def change(call: Call, request: ChangeInvisibleDurationRequest) -> ChangeInvisibleDurationResponse:
    """ChangeInvisibleDuration: extends a delivery; from a push consumer it means that the delivery has failed.

    A failed delivery waits as long as the group's retry policy says, whatever time the client asks for.
    """
    if request.suspend:
        raise Refused(Code.UNSUPPORTED, "This broker counts each delivery: leave suspend out.")
    group = call.whole(request.group.name)
    call.caller.require("consume", group)
    handle = request.receipt_handle
    if streams().is_push(call.client):
        outcomes = await kept(failing.nack(group, [handle], None))
        renewals().end([handle])
    else:
        seconds = _invisible(request.invisible_duration, 0.0)
        outcomes = await kept(settling.extend(group, [handle], seconds, least_seconds=0))
    return ChangeInvisibleDurationResponse(status=_only(outcomes), receipt_handle=handle)


async def forward(
    call: Call, request: ForwardMessageToDeadLetterQueueRequest
) -> ForwardMessageToDeadLetterQueueResponse:
    """ForwardMessageToDeadLetterQueue: gives up a delivery and makes its message a dead letter of the group."""
    group = call.whole(request.group.name)
    call.caller.require("consume", group)
    outcomes = await kept(failing.give_up(group, [request.receipt_handle]))
    renewals().end([request.receipt_handle])
    return ForwardMessageToDeadLetterQueueResponse(status=_only(outcomes))


async def leave(call: Call, request: NotifyClientTerminationRequest) -> NotifyClientTerminationResponse:
    """NotifyClientTermination: returns the unsettled deliveries of a push consumer to its group."""
    if request.group.name:
        group = call.whole(request.group.name)
        call.caller.require("consume", group)
        await kept(renewals().give_back(call.client, group))
    return NotifyClientTerminationResponse(status=OK)


def _only(outcomes: Sequence[Refusal | None]) -> Status:
    [refusal] = outcomes
    return _status(refusal)


def _status(refusal: Refusal | None) -> Status:
    return OK if refusal is None else statuses.of_refusal(refusal)
