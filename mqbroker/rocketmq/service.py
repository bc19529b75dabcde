"""The service `apache.rocketmq.v2.MessagingService`: its calls by their names, as handlers of grpc.aio.

Only here and in `server` are grpc's own types known. Refusals go into the answer's status, as in RocketMQ: the status
of gRPC stays OK. No exception is let out, for grpc.aio shows its text to callers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

import grpc
import structlog
from google.protobuf.message import Message

from mqbroker.rights import KeyRing
from mqbroker.rocketmq import receives, routes, sends, statuses, telemetry
from mqbroker.rocketmq.call import Call
from mqbroker.rocketmq.protocol import service_pb2
from mqbroker.rocketmq.protocol.definition_pb2 import Status
from store.process import runtime

logger = structlog.stdlib.get_logger(__name__)

NAME = "apache.rocketmq.v2.MessagingService"
# Quoted: grpc's classes have their parameters for a type checker only.
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Unary(NamedTuple):
    """A call with one answer."""

    function: Callable[[Call, Any], Awaitable[Message]]
    request: type[Message]
    response: type[Any]


UNARY = {
    "QueryRoute": Unary(routes.route, service_pb2.QueryRouteRequest, service_pb2.QueryRouteResponse),
    "Heartbeat": Unary(routes.heartbeat, service_pb2.HeartbeatRequest, service_pb2.HeartbeatResponse),
    "SendMessage": Unary(sends.send, service_pb2.SendMessageRequest, service_pb2.SendMessageResponse),
    "QueryAssignment": Unary(
        routes.assignment, service_pb2.QueryAssignmentRequest, service_pb2.QueryAssignmentResponse
    ),
    "AckMessage": Unary(receives.ack, service_pb2.AckMessageRequest, service_pb2.AckMessageResponse),
    "ForwardMessageToDeadLetterQueue": Unary(
        receives.forward,
        service_pb2.ForwardMessageToDeadLetterQueueRequest,
        service_pb2.ForwardMessageToDeadLetterQueueResponse,
    ),
    "EndTransaction": Unary(sends.end, service_pb2.EndTransactionRequest, service_pb2.EndTransactionResponse),
    "NotifyClientTermination": Unary(
        receives.leave, service_pb2.NotifyClientTerminationRequest, service_pb2.NotifyClientTerminationResponse
    ),
    "ChangeInvisibleDuration": Unary(
        receives.change, service_pb2.ChangeInvisibleDurationRequest, service_pb2.ChangeInvisibleDurationResponse
    ),
    "RecallMessage": Unary(sends.recall, service_pb2.RecallMessageRequest, service_pb2.RecallMessageResponse),
}
# A heartbeat needs no key: until one is answered Java and Go avoid a broker at which a send has failed.
OPEN_TO_ALL = frozenset(("Heartbeat",))


def handlers() -> dict[str, Handler]:
    """The handlers of the calls. A call that is not here is UNIMPLEMENTED, as those are in RocketMQ."""
    found: dict[str, Handler] = {
        name: grpc.unary_unary_rpc_method_handler(
            _unary(name, unary), unary.request.FromString, unary.response.SerializeToString
        )
        for name, unary in UNARY.items()
    }
    found["ReceiveMessage"] = grpc.unary_stream_rpc_method_handler(
        _receive,
        service_pb2.ReceiveMessageRequest.FromString,
        service_pb2.ReceiveMessageResponse.SerializeToString,
    )
    found["Telemetry"] = grpc.stream_stream_rpc_method_handler(
        _telemetry,
        service_pb2.TelemetryCommand.FromString,
        service_pb2.TelemetryCommand.SerializeToString,
    )
    return found


def _unary(name: str, unary: Unary) -> Callable[[Any, Context], Awaitable[Message]]:
    async def serve(request: Any, context: Context) -> Message:
        call = _call(context)
        try:
            if name not in OPEN_TO_ALL:
                await call.enter()
            return await unary.function(call, request)
        except asyncio.CancelledError:
            call.end()
            raise
        except Exception as problem:  # noqa: BLE001  # it is answered, and logged if it is no refusal
            answer: Message = unary.response(status=_status(name, call, problem))
            return answer

    return serve


async def _receive(
    request: service_pb2.ReceiveMessageRequest, context: Context
) -> AsyncIterator[service_pb2.ReceiveMessageResponse]:
    call = _call(context)
    has_begun = False
    try:
        await call.enter()
        async for response in receives.receive(call, request):
            has_begun = True
            yield response
    except (asyncio.CancelledError, GeneratorExit):
        call.end()
        raise
    except Exception as problem:  # noqa: BLE001  # it is answered, and logged if it is no refusal
        status = _status("ReceiveMessage", call, problem)
        if has_begun:
            # What was sent cannot be taken back by a second status: the client is to see a call that failed.
            await context.abort(grpc.StatusCode.UNAVAILABLE, status.message)
        yield service_pb2.ReceiveMessageResponse(status=status)


async def _telemetry(commands: AsyncIterator[service_pb2.TelemetryCommand], context: Context) -> None:
    call = _call(context)
    try:
        await telemetry.serve(call, commands, context.write)
    except asyncio.CancelledError:
        call.end()
        raise
    except Exception as problem:  # noqa: BLE001  # it is answered, and logged if it is no refusal
        call.end()
        await context.write(service_pb2.TelemetryCommand(status=_status("Telemetry", call, problem)))


def _call(context: Context) -> Call:
    return Call(dict(context.invocation_metadata() or ()), context.time_remaining(), runtime.control(KeyRing))


def _status(name: str, call: Call, problem: Exception) -> Status:
    """The status of a call that met a problem, in the words of the client's namespace."""
    status = statuses.of_problem(problem)
    if status is None:
        logger.error("a call failed", call=name, client=call.client_id, exc_info=problem)
        return statuses.failed()
    if call.namespace is not None:
        status.message = call.namespace.show_text(status.message)
    return status
