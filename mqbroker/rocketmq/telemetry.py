"""Telemetry: the stream that each client keeps open. It is answered its settings, and a producer is asked by it."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import structlog

from mqbroker.api.requests import begin_request
from mqbroker.rocketmq import settings, statuses
from mqbroker.rocketmq.call import Call, Client
from mqbroker.rocketmq.protocol.definition_pb2 import ClientType
from mqbroker.rocketmq.protocol.service_pb2 import TelemetryCommand
from store.errors import NoPermission, Unauthenticated
from store.process import runtime
from store.process.configuration import setting

logger = structlog.stdlib.get_logger(__name__)

# What waits to be written to a client that does not read; it is not asked more. In bytes, without the last page.
MAX_COMMANDS = 256
MAX_WAITING_BYTES = 1024 * 1024
# Of the topics that a producer names; it is asked about others once it sends half messages there.
MAX_TOPICS = 1000


class Unread(Exception):
    """A client has not taken a command within BODY_READ_SECONDS. Its stream ends; the client opens another one."""


class Stream:
    """The open stream of a client: what its settings say of it, and what waits to be written to it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.topics: set[str] = set()
        self.is_push = False
        self._commands: asyncio.Queue[TelemetryCommand] = asyncio.Queue(MAX_COMMANDS)
        self._waiting_bytes = 0
        self.is_unread = False
        # Held while a command is written: a write that is cancelled on its way breaks the end of the call.
        self.writing = asyncio.Lock()

    @property
    def room(self) -> int:
        """How many more commands it can take; none once the client is gone, or behind with what it is sent."""
        is_behind = self._waiting_bytes > MAX_WAITING_BYTES
        return MAX_COMMANDS - self._commands.qsize() if self.is_open and not is_behind else 0

    def ask(self, command: TelemetryCommand) -> None:
        """Has a command written, within `room`."""
        self._waiting_bytes += command.ByteSize()
        self._commands.put_nowait(command)

    async def answer(self, command: TelemetryCommand) -> None:
        """Has a command written once there is a place for it."""
        self._waiting_bytes += command.ByteSize()
        await self._commands.put(command)

    async def write(self, write: Callable[[TelemetryCommand], Awaitable[None]]) -> None:
        """Writes one command, once there is one. Raises TimeoutError where the client does not take it in time."""
        command = await self._commands.get()
        async with self.writing, asyncio.timeout(setting("BODY_READ_SECONDS")):
            await write(command)
        self._waiting_bytes -= command.ByteSize()

    @property
    def is_open(self) -> bool:
        """Whether the client is there."""
        return not self.call.gone.done()


class Streams:
    """The open streams of this process by their clients."""

    def __init__(self) -> None:
        self._by_client: dict[Client, Stream] = {}
        self._producers: defaultdict[str, set[Client]] = defaultdict(set)

    def began(self, stream: Stream) -> None:
        """A client has opened a stream; it goes on for an earlier one of the same client, which is left to end."""
        earlier = self._by_client.get(stream.call.client)
        if earlier is not None:
            stream.topics |= earlier.topics
        self._by_client[stream.call.client] = stream

    def ended(self, stream: Stream) -> None:
        """A stream has ended."""
        stream.call.end()
        if self._by_client.get(stream.call.client) is stream:
            del self._by_client[stream.call.client]
            for topic in stream.topics:
                self._producers[topic].discard(stream.call.client)
                if not self._producers[topic]:
                    del self._producers[topic]

    def produces(self, client: Client, topic: str) -> None:
        """A client that has a stream sends half messages to a topic, and so may be asked about them."""
        stream = self._by_client.get(client)
        if stream is not None:
            stream.topics.add(topic)
            self._producers[topic].add(client)

    def topics(self) -> list[str]:
        """The topics with a producer whose stream is open here: it can be asked about their transactions."""
        return list(self._producers)

    def of_topic(self, topic: str) -> Stream | None:
        """The stream of one of the topic's producers, each time another one; None where none can take a question."""
        clients = list(self._producers.get(topic, ()))
        found = [self._by_client[client] for client in random.sample(clients, len(clients))]
        return next((one for one in found if one.room and one.call.caller.may("produce", topic)), None)

    def has(self, client: Client) -> bool:
        """Whether a client has an open stream here."""
        stream = self._by_client.get(client)
        return stream is not None and stream.is_open

    async def may_consume(self, client: Client) -> bool:
        """Whether a client has an open stream here, and a key that may consume: it may have been revoked since."""
        stream = self._by_client.get(client)
        if stream is None or not stream.is_open:
            return False
        try:
            (await stream.call.caller_now()).require_any("consume")
        except (Unauthenticated, NoPermission):
            return False
        return True

    def is_push(self, client: Client) -> bool:
        """Whether a client is a push consumer, as its settings say."""
        stream = self._by_client.get(client)
        return stream is not None and stream.is_push


def streams() -> Streams:
    """The streams of this process."""
    return runtime.control(Streams)


async def serve(
    call: Call, commands: AsyncIterator[TelemetryCommand], write: Callable[[TelemetryCommand], Awaitable[None]]
) -> None:
    """The stream of a client, until it ends. A client that may not enter is answered why, and the stream ends.

    Raises Unread.
    """
    try:
        await call.enter()
    except Exception as problem:
        if (status := statuses.of_problem(problem)) is None:
            raise
        await write(TelemetryCommand(status=status))
        return
    stream, serving = Stream(call), asyncio.current_task()
    assert serving is not None
    streams().began(stream)
    writing = asyncio.create_task(_write(stream, write, serving))
    try:
        async for command in commands:
            if command.HasField("settings"):
                await stream.answer(await _settled(stream, command))
    except asyncio.CancelledError:
        if not stream.is_unread:
            raise
        serving.uncancel()
        raise Unread from None
    finally:
        streams().ended(stream)
        async with stream.writing:
            writing.cancel()


async def _write(
    stream: Stream, write: Callable[[TelemetryCommand], Awaitable[None]], serving: asyncio.Task[Any]
) -> None:
    try:
        while True:
            await stream.write(write)
    except TimeoutError:
        # It would go on for as long as the client is connected.
        stream.is_unread = True
        serving.cancel()
    except Exception:  # noqa: BLE001  # by either server another one: the client has gone
        stream.call.end()


async def _settled(stream: Stream, command: TelemetryCommand) -> TelemetryCommand:
    """Notes what a client says of itself; returns the settings that it is to use, or why there are none."""
    given = command.settings
    stream.is_push = given.client_type in (ClientType.PUSH_CONSUMER, ClientType.LITE_PUSH_CONSUMER)
    for topic in given.publishing.topics[:MAX_TOPICS]:
        streams().produces(stream.call.client, stream.call.whole(topic.name))
    begin_request()
    try:
        return TelemetryCommand(status=statuses.OK, settings=await settings.answered(stream.call, given))
    except Exception as problem:
        if (status := statuses.of_problem(problem)) is None:
            logger.exception("settings failed", client=stream.call.client_id)
        return TelemetryCommand(status=status or statuses.failed())
