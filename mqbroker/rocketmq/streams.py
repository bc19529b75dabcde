"""The open Telemetry streams of this process: which clients are there, and who is asked about a topic's half messages.

A client says by its settings to which topics it produces, and each settings command replaces what the one before it
said. What it sends half messages to is noted, too.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from itertools import islice
from typing import NamedTuple

from mqbroker.rocketmq.call import Call, Client
from mqbroker.rocketmq.protocol.service_pb2 import TelemetryCommand
from store.errors import NoPermission, Unauthenticated
from store.naming.names import is_name
from store.process import runtime
from store.process.configuration import setting
from store.process.shares import Shares

# Of one stream: of the topics that its settings name, and of those that it has sent half messages to, so many each.
MAX_TOPICS = 200
# Of all streams together; one key has five eighths of them. A topic of a stream takes some 300 bytes.
MAX_TOPICS_OF_ALL = 10_000
# What waits to be written to a client that does not read; it is not asked more. In bytes, without the last page.
MAX_COMMANDS = 256
MAX_WAITING_BYTES = 1024 * 1024
# The same of all streams of one key.
MAX_WAITING_BYTES_OF_KEY = 8 * 1024 * 1024


class Waiting(NamedTuple):
    """A command that waits to be written, and its bytes. It is made as it is written: bodies are unpacked for that."""

    size: int
    made: Callable[[], AbstractAsyncContextManager[TelemetryCommand]]


class Stream:
    """The open stream of a client: what its settings say of it, and what waits to be written to it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        # The topics that its settings name, and those of its half messages, in the order of their first ones.
        self.named: set[str] = set()
        self.sent: dict[str, None] = {}
        self.is_push = False
        self.is_unread = False
        # Held while a command is written: a write that is cancelled on its way breaks the end of the call.
        self.writing = asyncio.Lock()
        self._commands: asyncio.Queue[Waiting] = asyncio.Queue(MAX_COMMANDS)
        self._waiting_bytes = 0
        self._is_closed = False
        self._of_keys = streams().waiting_bytes

    @property
    def is_open(self) -> bool:
        """Whether the client is there."""
        return not self.call.gone.done()

    @property
    def room(self) -> int:
        """How many more commands it can take; none once the client is gone, or behind with what it is sent."""
        is_behind = self._waiting_bytes > MAX_WAITING_BYTES
        if not self.is_open or is_behind or self._of_keys[self.call.client[0]] > MAX_WAITING_BYTES_OF_KEY:
            return 0
        return self.places

    @property
    def places(self) -> int:
        """How many more commands of a page it can take, whose first one it had room for."""
        return MAX_COMMANDS - self._commands.qsize() if self.is_open else 0

    def ask(self, waiting: Waiting) -> None:
        """Has a command written, within `room` or `places`."""
        self._commands.put_nowait(waiting)
        self._count(waiting.size)

    async def write(self, write: Callable[[TelemetryCommand], Awaitable[None]]) -> None:
        """Writes one command, once there is one. Raises TimeoutError where the client does not take it in time."""
        waiting = await self._commands.get()
        async with waiting.made() as command:
            await self.write_now(write, command)
        self._count(-waiting.size)

    async def write_now(self, write: Callable[[TelemetryCommand], Awaitable[None]], command: TelemetryCommand) -> None:
        """Writes a command. Raises TimeoutError where the client does not take it in time."""
        async with self.writing, asyncio.timeout(setting("BODY_READ_SECONDS")):
            await write(command)

    def close(self) -> None:
        """The stream has ended: nothing waits any more."""
        self.call.end()
        self._count(-self._waiting_bytes)
        self._is_closed = True

    def _count(self, size: int) -> None:
        # A write that was under way ends behind the stream.
        if self._is_closed:
            return
        self._waiting_bytes += size
        self._of_keys[self.call.client[0]] += size
        if not self._of_keys[self.call.client[0]]:
            del self._of_keys[self.call.client[0]]


class Streams:
    """The open streams of this process by their clients."""

    def __init__(self) -> None:
        # By key.
        self.waiting_bytes: Counter[str] = Counter()
        self._by_client: dict[Client, Stream] = {}
        self._producers: dict[str, dict[Client, None]] = {}
        self._noted = Shares(MAX_TOPICS_OF_ALL)

    def began(self, stream: Stream) -> None:
        """A client has opened a stream; it goes on for an earlier one of the same client, which is left to end."""
        client = stream.call.client
        earlier = self._by_client.get(client)
        if earlier is not None:
            stream.named, stream.sent = earlier.named, earlier.sent
            earlier.named, earlier.sent = set(), {}
        self._by_client[client] = stream

    def ended(self, stream: Stream) -> None:
        """A stream that has begun has ended."""
        client = stream.call.client
        stream.close()
        if self._by_client.get(client) is stream:
            del self._by_client[client]
            for topic in {*stream.named, *stream.sent}:
                self._forget(client, topic)

    def names(self, stream: Stream, topics: Iterable[str]) -> None:
        """The settings of a client name these topics, in place of the topics that its settings named before.

        Of the first MAX_TOPICS those count that its key may produce to. A client is asked about the half messages of
        other topics once it sends some.
        """
        if self._by_client.get(stream.call.client) is not stream:
            return
        before, client = stream.named, stream.call.client
        may = stream.call.caller.may
        stream.named = {topic for topic in islice(topics, MAX_TOPICS) if is_name(topic) and may("produce", topic)}
        for topic in before - stream.named - stream.sent.keys():
            self._forget(client, topic)
        stream.named = {topic for topic in stream.named if self._note(client, topic)}

    def produces(self, client: Client, topic: str) -> None:
        """A client that has a stream sends half messages to a topic, and so may be asked about them."""
        stream = self._by_client.get(client)
        if stream is None or topic in stream.sent or not self._note(client, topic):
            return
        stream.sent[topic] = None
        if len(stream.sent) > MAX_TOPICS:
            del stream.sent[first := next(iter(stream.sent))]
            if first not in stream.named:
                self._forget(client, first)

    def _note(self, client: Client, topic: str) -> bool:
        clients = self._producers.get(topic, {})
        if client in clients:
            return True
        if not self._noted.take(client[0]):
            return False
        self._producers.setdefault(topic, clients)[client] = None
        return True

    def _forget(self, client: Client, topic: str) -> None:
        clients = self._producers[topic]
        del clients[client]
        self._noted.give_back(client[0])
        if not clients:
            del self._producers[topic]

    def topics(self) -> list[str]:
        """The topics with a producer whose stream is open here: it can be asked about their transactions."""
        return list(self._producers)

    def of_topic(self, topic: str, key: str | None = None) -> Iterator[Stream]:
        """The open streams of the topic's producers whose keys may produce to it, of one key or of all.

        Each time they begin with another one.
        """
        clients = list(self._producers.get(topic, ()))
        first = random.randrange(len(clients)) if clients else 0
        for client in [*clients[first:], *clients[:first]]:
            if key in (None, client[0]):
                stream = self._by_client[client]
                if stream.is_open and stream.call.caller.may("produce", topic):
                    yield stream

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
