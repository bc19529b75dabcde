"""The service `apache.rocketmq.v2.MessagingService`: its calls by their names, as handlers of grpc.aio.

A request is read behind its caller's key where the server reads when it is asked to, as grpcio's does: its calls are
streams of one request then, which are the same on the wire.

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
from mqbroker.rocketmq import reading, receives, routes, sends, statuses, telemetry
from mqbroker.rocketmq.call import Call
from mqbroker.rocketmq.protocol import service_pb2
from mqbroker.rocketmq.protocol.definition_pb2 import Status
from store.process import runtime

logger = structlog.stdlib.get_logger(__name__)

NAME = "apache.rocketmq.v2.MessagingService"
# Quoted: grpc's classes have their parameters for a type checker only.
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
# What a server hands over for a request: its bytes, or the stream to read it from.
Given: TypeAlias = bytes | AsyncIterator[bytes]
# The bytes of the request of a call that has entered.
BytesOf: TypeAlias = Callable[[Call, Given, Context], Awaitable[bytes]]


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


def handlers(*, read_whole: bool) -> dict[str, Handler]:
    """The handlers of the calls. A call that is not here is UNIMPLEMENTED, as those are in RocketMQ.

    `read_whole`: of a server that reads each request to its end before it calls a handler.
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
    # A call that ends without a request has an empty one.
    return await reading.read(call, lambda: _next(context)) or b""


async def _next(context: Context) -> bytes | None:
    """The next message of a call; None at its end."""
    found = await context.read()
    return None if found is grpc.aio.EOF else found


async def _commands(call: Call, context: Context) -> AsyncIterator[bytes]:
    """The commands of a stream, the first one in a turn: of those that never end it a bounded part is read."""
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
        except Exception as problem:  # noqa: BLE001 # it is answered, and logged if it is no refusal
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
        except Exception as problem:  # noqa: BLE001 # it is answered, and logged if it is no refusal
            status = _status("ReceiveMessage", call, problem)
            if has_begun:
                # What was sent cannot be taken back by a second status: the client is to see a call that failed.
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
        except Exception as problem:  # noqa: BLE001 # it is answered, and logged if it is no refusal
            call.end()
            await context.write(service_pb2.TelemetryCommand(status=_status("Telemetry", call, problem)))
        finally:
            call.leave()

    return serve


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
