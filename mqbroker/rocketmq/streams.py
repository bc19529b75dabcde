"""The open Telemetry streams of this process: which clients are connected, and which client to ask about a topic's half
messages.

A client's settings list the topics to which it produces; new settings replace earlier ones. A topic to which a client
sends half messages counts as well.
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

# The maximum number of topics in the settings of one stream, and also of topics of its half messages.
MAX_TOPICS = 200
# The maximum number of topics of all streams together, of which one key may have five eighths. A topic of a stream
# takes about 300 bytes.
MAX_TOPICS_OF_ALL = 10_000
# The maximum number of commands that wait for a client that does not read, and their maximum bytes without the last
# page. Beyond these limits the client is not asked.
MAX_COMMANDS = 256
MAX_WAITING_BYTES = 1024 * 1024
# The maximum bytes of the waiting commands of all streams of one API key together.
MAX_WAITING_BYTES_OF_KEY = 8 * 1024 * 1024


class Waiting(NamedTuple):
    """A command that waits to be written, and its size in bytes.

    The command is built only when it is written, because a body may have to be decompressed for it.
    """

    size: int
    made: Callable[[], AbstractAsyncContextManager[TelemetryCommand]]


class Stream:
    """The open stream of a client: the content of its settings, and the commands that wait to be written."""

    def __init__(self, call: Call) -> None:
        self.call = call
        # The topics in the client's settings. `sent` below: the topics of its half messages, in the order of their
        # first message.
        self.named: set[str] = set()
        self.sent: dict[str, None] = {}
        self.is_push = False
        self.is_unread = False
        # A lock that is held while a command is written: if a write were cancelled halfway, the call could not end
        # properly.
        self.writing = asyncio.Lock()
        self._commands: asyncio.Queue[Waiting] = asyncio.Queue(MAX_COMMANDS)
        self._waiting_bytes = 0
        self._is_closed = False
        self._of_keys = streams().waiting_bytes

    @property
    def is_open(self) -> bool:
        """Whether the client is still connected."""
        return not self.call.gone.done()

    @property
    def room(self) -> int:
        """How many more commands the stream accepts; 0 if the client has gone or does not read."""
        is_behind = self._waiting_bytes > MAX_WAITING_BYTES
        if not self.is_open or is_behind or self._of_keys[self.call.client[0]] > MAX_WAITING_BYTES_OF_KEY:
            return 0
        return self.places

    @property
    def places(self) -> int:
        """How many more commands of the same page the stream accepts, after `room` allowed the first."""
        return MAX_COMMANDS - self._commands.qsize() if self.is_open else 0

    def ask(self, waiting: Waiting) -> None:
        """Queues a command for writing; the caller has checked `room` or `places`."""
        self._commands.put_nowait(waiting)
        self._count(waiting.size)

    async def write(self, write: Callable[[TelemetryCommand], Awaitable[None]]) -> None:
        """Waits for a command and writes it. Raises TimeoutError if the client does not read it in time."""
        waiting = await self._commands.get()
        async with waiting.made() as command:
            await self.write_now(write, command)
        self._count(-waiting.size)

    async def write_now(self, write: Callable[[TelemetryCommand], Awaitable[None]], command: TelemetryCommand) -> None:
        """Writes a command at once. Raises TimeoutError if the client does not read it in time."""
        async with self.writing, asyncio.timeout(setting("BODY_READ_SECONDS")):
            await write(command)

    def close(self) -> None:
        """Ends the stream and drops the commands that wait."""
        self.call.end()
        self._count(-self._waiting_bytes)
        self._is_closed = True

    def _count(self, size: int) -> None:
        # If a write was running when the stream was closed, this call comes after the close and counts nothing.
        if self._is_closed:
            return
        self._waiting_bytes += size
        self._of_keys[self.call.client[0]] += size
        if not self._of_keys[self.call.client[0]]:
            del self._of_keys[self.call.client[0]]


class Streams:
    """The open streams of this process by client."""

    def __init__(self) -> None:
        # The bytes that wait in the streams, by API key.
        self.waiting_bytes: Counter[str] = Counter()
        self._by_client: dict[Client, Stream] = {}
        self._producers: dict[str, dict[Client, None]] = {}
        self._noted = Shares(MAX_TOPICS_OF_ALL)

    def began(self, stream: Stream) -> None:
        """Notes a client's new stream. It replaces an earlier stream of the same client, which ends by itself."""
        client = stream.call.client
        earlier = self._by_client.get(client)
        if earlier is not None:
            stream.named, stream.sent = earlier.named, earlier.sent
            earlier.named, earlier.sent = set(), {}
        self._by_client[client] = stream

    def ended(self, stream: Stream) -> None:
        """Notes that a stream has ended."""
        client = stream.call.client
        stream.close()
        if self._by_client.get(client) is stream:
            del self._by_client[client]
            for topic in {*stream.named, *stream.sent}:
                self._forget(client, topic)

    def names(self, stream: Stream, topics: Iterable[str]) -> None:
        """Notes the topics in a client's settings, in place of earlier topics.

        Only the first MAX_TOPICS names count, and only topics to which the key may produce. A client is also asked
        about other topics once it has sent half messages to them.
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
        """Notes that a connected client sends half messages to a topic, so that it can be asked about them."""
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
        """The topics with a producer whose stream is open in this process, so that it can be asked
        about transactions.
        """
        return list(self._producers)

    def of_topic(self, topic: str, key: str | None = None) -> Iterator[Stream]:
        """The open streams of a topic's producers whose keys may produce to the topic; with `key`, only streams of this
        key.

        Each call begins with another stream.
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
        """Whether a client has an open stream and a key that may still consume; the key may have been revoked."""
        stream = self._by_client.get(client)
        if stream is None or not stream.is_open:
            return False
        try:
            (await stream.call.caller_now()).require_any("consume")
        except (Unauthenticated, NoPermission):
            return False
        return True

    def is_push(self, client: Client) -> bool:
        """Whether a client is a push consumer by its settings."""
        stream = self._by_client.get(client)
        return stream is not None and stream.is_push


def streams() -> Streams:
    """This process's object of the class Streams."""
    return runtime.control(Streams)
