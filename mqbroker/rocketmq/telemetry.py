"""Telemetry: the stream that each client keeps open. On it the broker answers settings and asks producers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import structlog

from mqbroker.api.requests import begin_request
from mqbroker.rocketmq import settings, statuses
from mqbroker.rocketmq.call import Call
from mqbroker.rocketmq.protocol.definition_pb2 import ClientType, Code
from mqbroker.rocketmq.protocol.service_pb2 import TelemetryCommand
from mqbroker.rocketmq.reading import parsed
from mqbroker.rocketmq.statuses import Refused
from mqbroker.rocketmq.streams import MAX_TOPICS, Stream, streams

logger = structlog.stdlib.get_logger(__name__)

# The maximum size of a client's command: enough for all topics that count and for the client's other settings.
MAX_COMMAND_BYTES = 128 * 1024

Write = Callable[[TelemetryCommand], Awaitable[None]]


class Unread(Exception):
    """A client has not read a command within BODY_READ_SECONDS. Its stream ends, and the client opens a new stream."""


async def serve(call: Call, commands: AsyncIterator[bytes], write: Write) -> None:
    """Serves the stream of a client until it ends. A client without access is sent the reason, and its stream ends.

    Raises Unread.
    """
    try:
        await call.enter()
    except Exception as problem:
        if (status := statuses.of_problem(problem)) is None:
            raise
        await write(TelemetryCommand(status=status))
        return
    stream = Stream(call)
    streams().began(stream)
    serving = asyncio.current_task()
    assert serving is not None
    writing = asyncio.create_task(_write(stream, write, serving))
    try:
        async for given in commands:
            # The next command is read only after the client has read the answer to this one.
            if (answer := await _answered(stream, given)) is not None and not await _is_taken(stream, write, answer):
                break
    except asyncio.CancelledError:
        if not stream.is_unread:
            raise
        serving.uncancel()
        raise Unread from None
    finally:
        streams().ended(stream)
        async with stream.writing:
            writing.cancel()


async def _write(stream: Stream, write: Write, serving: asyncio.Task[Any]) -> None:
    try:
        while True:
            await stream.write(write)
    except TimeoutError:
        # The call is cancelled explicitly: otherwise the write would go on for as long as the client is connected.
        stream.is_unread = True
        serving.cancel()
    except Exception:  # noqa: BLE001  # each server raises another error: the client has gone
        stream.call.end()


async def _is_taken(stream: Stream, write: Write, answer: TelemetryCommand) -> bool:
    """Writes an answer; returns whether the client is still connected. Raises Unread."""
    try:
        await stream.write_now(write, answer)
    except TimeoutError:
        raise Unread from None
    except Exception:  # noqa: BLE001  # each server raises another error: the client has gone
        return False
    return True


async def _answered(stream: Stream, given: bytes) -> TelemetryCommand | None:
    """The answer to a command: the settings to use, or why there are none; None for a command without an answer."""
    begin_request()
    try:
        if len(given) > MAX_COMMAND_BYTES:
            raise Refused(
                Code.BAD_REQUEST,
                f"A command has {len(given)} bytes, the limit is {MAX_COMMAND_BYTES}: name fewer topics.",
            )
        command = parsed(given, TelemetryCommand)
        return await _settled(stream, command) if command.HasField("settings") else None
    except Exception as problem:
        if (status := statuses.of_problem(problem)) is None:
            logger.exception("settings failed", client=stream.call.client_id)
        return TelemetryCommand(status=status or statuses.failed())


async def _settled(stream: Stream, command: TelemetryCommand) -> TelemetryCommand:
    """Notes a client's settings; returns the settings that it has to use."""
    given = command.settings
    stream.is_push = given.client_type in (ClientType.PUSH_CONSUMER, ClientType.LITE_PUSH_CONSUMER)
    streams().names(stream, [stream.call.whole(topic.name) for topic in given.publishing.topics[:MAX_TOPICS]])
    return TelemetryCommand(status=statuses.OK, settings=await settings.answered(stream.call, given))
