"""The service `apache.rocketmq.v2.MessagingService`: its calls by name, as handlers of grpc.aio.

grpcio's server reads a request only when the handler asks for it. So the handler first checks the caller's key: its
calls are declared as streams of one request, which are the same on the wire.

Only this module and `server` use grpc's types. A refusal is in the answer's status, as in RocketMQ; gRPC's own status
stays OK. No exception leaves a handler, because grpc.aio shows its text to callers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

import grpc
import structlog
from google.protobuf.message import Message

from mqbroker.rights import KeyRing
from mqbroker.rocketmq import reading, receives, routes, sends, statuses, telemetry
from mqbroker.rocketmq.call import Call
from mqbroker.rocketmq.protocol import service_pb2
from mqbroker.rocketmq.protocol.definition_pb2 import Status
from store.process import runtime

logger = structlog.stdlib.get_logger(__name__)

NAME = "apache.rocketmq.v2.MessagingService"
# A string, because grpc's classes are generic only for type checkers.
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
# The request that a server passes to a handler: its bytes, or the stream from which to read it.
Given: TypeAlias = bytes | AsyncIterator[bytes]
# A function that reads the request's bytes for a call after `enter`.
BytesOf: TypeAlias = Callable[[Call, Given, Context], Awaitable[bytes]]


class Unary(NamedTuple):
    """A gRPC call with one answer."""

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
# Calls that need no key: Java and Go avoid a broker after a failed send until a heartbeat is answered.
OPEN_TO_ALL = frozenset(("Heartbeat",))


def handlers(*, read_whole: bool) -> dict[str, Handler]:
    """The handlers of the calls. gRPC answers any other call with UNIMPLEMENTED, as RocketMQ does.

    `read_whole`: the server reads each request completely before it calls a handler.
    """
    unary, stream, bytes_of = (
        (grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler, _as_it_came)
        if read_whole
        else (grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler, _read_now)
    )
    found: dict[str, Handler] = {
        name: unary(_unary(name, one, bytes_of), None, one.response.SerializeToString) for name, one in UNARY.items()
    }
    found["ReceiveMessage"] = stream(_receiving(bytes_of), None, service_pb2.ReceiveMessageResponse.SerializeToString)
    found["Telemetry"] = grpc.stream_stream_rpc_method_handler(
        _telemetry(read_whole=read_whole),
        None,
        service_pb2.TelemetryCommand.SerializeToString,
    )
    return found


async def _as_it_came(call: Call, given: Given, context: Context) -> bytes:
    assert isinstance(given, bytes)
    return given


async def _read_now(call: Call, given: Given, context: Context) -> bytes:
    # A call that ends without a request counts as an empty request.
    return await reading.read(call, lambda: _next(context)) or b""


async def _next(context: Context) -> bytes | None:
    """The next message of a call; None at its end."""
    found = await context.read()
    return None if found is grpc.aio.EOF else found


async def _commands(call: Call, context: Context) -> AsyncIterator[bytes]:
    """The commands of a stream.

    The first command is read in a turn, so that only a limited number of unfinished commands is in memory.
    """
    given = await reading.read(call, lambda: _next(context), reading.FirstCommands)
    while given is not None:
        yield given
        given = await _next(context)


def _unary(name: str, unary: Unary, bytes_of: BytesOf) -> Callable[[Any, Context], Awaitable[Message]]:
    async def serve(given: Given, context: Context) -> Message:
        call = _call(context)
        try:
            if name in OPEN_TO_ALL:
                return await unary.function(call, unary.request())
            await call.enter()
            with reading.held(await bytes_of(call, given, context), unary.request) as request:
                return await unary.function(call, request)
        except asyncio.CancelledError:
            call.end()
            raise
        except Exception as problem:  # noqa: BLE001  # answered, and logged unless it is a refusal
            answer: Message = unary.response(status=_status(name, call, problem))
            return answer
        finally:
            call.leave()

    return serve


def _receiving(bytes_of: BytesOf) -> Callable[[Any, Context], AsyncIterator[Message]]:
    async def serve(given: Given, context: Context) -> AsyncIterator[service_pb2.ReceiveMessageResponse]:
        call = _call(context)
        has_begun = False
        try:
            await call.enter()
            with reading.held(await bytes_of(call, given, context), service_pb2.ReceiveMessageRequest) as request:
                async for response in receives.receive(call, request):
                    has_begun = True
                    with reading.taken_in_time():
                        yield response
        except (asyncio.CancelledError, GeneratorExit):
            call.end()
            raise
        except Exception as problem:  # noqa: BLE001  # answered, and logged unless it is a refusal
            status = _status("ReceiveMessage", call, problem)
            if has_begun:
                # Answers were already sent, so a status cannot replace them: the call is aborted, so that the client
                # sees it fail.
                await context.abort(grpc.StatusCode.UNAVAILABLE, status.message)
            yield service_pb2.ReceiveMessageResponse(status=status)
        finally:
            call.leave()

    return serve


def _telemetry(*, read_whole: bool) -> Callable[[AsyncIterator[bytes], Context], Awaitable[None]]:
    async def serve(given: AsyncIterator[bytes], context: Context) -> None:
        call = _call(context)
        try:
            await telemetry.serve(call, given if read_whole else _commands(call, context), context.write)
        except asyncio.CancelledError:
            call.end()
            raise
        except telemetry.Unread:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, "The client took no command in time: open the stream again."
            )
        except Exception as problem:  # noqa: BLE001  # answered, and logged unless it is a refusal
            call.end()
            await context.write(service_pb2.TelemetryCommand(status=_status("Telemetry", call, problem)))
        finally:
            call.leave()

    return serve


def _call(context: Context) -> Call:
    return Call(dict(context.invocation_metadata() or ()), context.time_remaining(), runtime.control(KeyRing))


def _status(name: str, call: Call, problem: Exception) -> Status:
    """The status for a problem of a call. Names in it are as the client writes them, without its namespace."""
    status = statuses.of_problem(problem)
    if status is None:
        logger.error("a call failed", call=name, client=call.client_id, exc_info=problem)
        return statuses.failed()
    if call.namespace is not None:
        status.message = call.namespace.show_text(status.message)
    return status
