"""Notices of new entries: they wake the requests that wait for messages, in this process and, by NOTIFY, in others.

NOTIFY uses a separate connection, because inside the writing transaction it would take a lock of the whole database at
the commit. No request depends on NOTIFY: each reads again by itself after some seconds.
"""

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator

import psycopg
import structlog

from store.db import connections
from store.errors import Refusal
from store.notices import caches
from store.notices.caches import Changes
from store.notices.emptied import Emptied
from store.notices.hearing import DEAF_SECONDS, Flooded, Hearing
from store.notices.listeners import Listeners, Read, Waiter, join
from store.notices.peers import NOTIFY, PRESENCE_SECONDS, Peers
from store.process import runtime
from store.queues import Entry

logger = structlog.stdlib.get_logger(__name__)

CHANNEL = "mqbroker_visible"
COALESCE_SECONDS = 0.015
RECONNECT_SECONDS = 1.0
LOOK_SECONDS = 30.0
# A notice: the name of the sending process, and for each topic how many messages became visible.
PAYLOAD = re.compile(r"[0-9a-f]{0,32};(?:[0-9]{1,18}:[0-9]{1,9}(?:,|$))*")
# A payload has at most 8000 bytes, and a topic takes some 20 bytes. More topics go into the next notice.
MAX_TOPICS_PER_NOTIFY = 300


class Wakeups:
    """The listeners of one process in one cell. Each new message wakes one request of each reader of its topic."""

    def __init__(self) -> None:
        self._home = runtime.here()
        self._topics: dict[int, dict[Hashable, Listeners]] = {}
        self._peers = self._home.part(Peers)
        self._emptied = Emptied(self._peers)
        # The writer that is answering a batch in this turn of the event loop; None at other times.
        self._writer: object = None
        # The number of changes of the configuration that this process has heard of.
        self._changes = 0
        self._unsent: Counter[int] = Counter()
        self._sender: asyncio.Task[None] | None = None
        self._receiver: asyncio.Task[None] | None = None
        self._presence: asyncio.Task[None] | None = None
        self._greeting: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def listening(self, topic_ids: Collection[int], reader: Hashable) -> Iterator[Waiter]:
        """Yields a waiter that notices every message that becomes visible in the topics within the block."""
        topics = {topic: self._topics.setdefault(topic, {}).setdefault(reader, Listeners()) for topic in topic_ids}
        for topic in topics.values():
            topic.reading += 1
        try:
            yield Waiter(topics, reader, self._emptied, self._changes)
        finally:
            for topic in topics.values():
                topic.reading -= 1
                topic.missed = min(topic.missed, topic.reading)
            self._forget(topic_ids, reader)

    def _forget(self, topic_ids: Collection[int], reader: Hashable) -> None:
        for topic in topic_ids:
            readers = self._topics.get(topic, {})
            if reader in readers and readers[reader].is_unused:
                del readers[reader]
            if not readers:
                self._topics.pop(topic, None)

    @contextlib.contextmanager
    def answers_of(self, writer: object) -> Iterator[None]:
        """A block in which this writer publishes messages; reads in later batches of this writer see these messages."""
        self._writer = writer
        try:
            yield
        finally:
            self._writer = None

    def forget_all(self) -> None:
        """The configuration may have changed, so requests that are waiting now may not join a batch any more.

        May be called from any thread.
        """
        self._changes += 1

    def joining(self, topic_ids: Collection[int], writer: object, most: int) -> list[Read]:
        """The reads that join a writer's next batch, which has messages in these topics: one read for each reader."""
        found: list[Read] = []
        for listeners in [each for topic_id in topic_ids for each in self._topics.get(topic_id, {}).values()]:
            if len(found) < most and (read := join(listeners, self._changes, writer)) is not None:
                found.append(read)
        return found

    def wake(self, topic_id: int, messages: int) -> None:
        """Wakes up to `messages` requests of each reader of the topic, in this process only."""
        self._emptied.published(topic_id)
        for listeners in self._topics.get(topic_id, {}).values():
            listeners.wake(messages, self._writer)

    def notify(self, topics: Counter[int]) -> None:
        """Wakes requests of every process, given the number of new visible messages by topic."""
        for topic_id, messages in topics.items():
            self.wake(topic_id, messages)
        if not self._peers.may_listen(time.monotonic()):
            return
        self._unsent.update(topics)
        if self._unsent and (self._sender is None or self._sender.done()):
            self._sender = self._home.task(self._send_notices(), "notify")

    async def _send_notices(self) -> None:
        while self._unsent:
            sent = dict(self._unsent.most_common(MAX_TOPICS_PER_NOTIFY))
            for topic_id in sent:
                del self._unsent[topic_id]
            await self._say(",".join(f"{topic_id}:{messages}" for topic_id, messages in sent.items()))
            # The first notice is sent at once; the notices of the next milliseconds are sent as one.
            await asyncio.sleep(COALESCE_SECONDS)

    async def _say(self, topics: str) -> None:
        with contextlib.suppress(Refusal):
            payload = f"{self._peers.sender};{topics}"
            await connections.read(NOTIFY, {"channel": CHANNEL, "payload": payload})

    def start(self) -> None:
        """Starts receiving notices from other processes, and announces this process to them."""
        if self._receiver is None:
            self._peers.begin()
            self._receiver = self._home.task(self._receive_notices(), "listen")
            self._presence = self._home.task(self._be_present(), "present")

    async def _be_present(self) -> None:
        """Announces this process repeatedly, also while it does not listen, because changes must wait for this
        process's caches.
        """
        while True:
            await self._say("")
            await asyncio.sleep(PRESENCE_SECONDS)

    async def _receive_notices(self) -> None:
        while True:
            pause = RECONNECT_SECONDS
            try:
                connection = await connections.connect("mqbroker-listener", direct=True)
                async with connection:
                    hearing = Hearing(connection)
                    await self._begin_listening(hearing)
                    while True:
                        async for notice in hearing.notices(LOOK_SECONDS):
                            self._received(notice)
                        # Finds out whether the connection has broken silently.
                        await hearing.execute(b"SELECT 1")
            except (psycopg.Error, Flooded) as problem:
                logger.warning("not listening for other processes", problem=type(problem).__name__)
                if isinstance(problem, Flooded):
                    pause = DEAF_SECONDS
            self._peers.end()
            await asyncio.sleep(pause)

    async def _begin_listening(self, hearing: Hearing) -> None:
        await hearing.execute(f"LISTEN {CHANNEL}".encode())
        if self._home is runtime.current():
            await hearing.execute(f"LISTEN {caches.CHANNEL}".encode())
            # This process may have cached values that were changed before it listened.
            self._home.forget()
        self._peers.listen(time.monotonic())
        await self._say("")

    def _received(self, notice: psycopg.Notify) -> None:
        if notice.channel == caches.CHANNEL:
            runtime.control(Changes).heard(notice.payload)
            return
        if not PAYLOAD.fullmatch(notice.payload):
            return  # Any role may notify the channel, so a notice may be invalid.
        name, _, topics = notice.payload.partition(";")
        if name == self._peers.name:
            self._peers.hear_itself(time.monotonic())
            return
        if self._peers.hear(name, time.monotonic()):
            self._greeting = self._home.task(self._say(""), "greet")
        for topic in filter(None, topics.split(",")):
            topic_id, _, messages = topic.partition(":")
            self.wake(int(topic_id), int(messages))

    async def close(self) -> None:
        """Stops sending and receiving notices."""
        for task in (self._presence, self._receiver, self._sender, self._greeting):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self._presence = self._receiver = self._sender = self._greeting = None


def visible(entries: Iterable[Entry]) -> None:
    """Wakes requests of every process for entries that were just committed."""
    notify(Counter(entry.topic_id for entry in entries))


def notify(topics: Counter[int]) -> None:
    """Wakes requests of every process, in the cell that this task works for: see `Wakeups.notify`."""
    runtime.part(Wakeups).notify(topics)


def listening(topic_ids: Collection[int], reader: Hashable) -> contextlib.AbstractContextManager[Waiter]:
    """Yields a waiter, in the cell that this task works for: see `Wakeups.listening`."""
    return runtime.part(Wakeups).listening(topic_ids, reader)


def start() -> None:
    """Starts receiving notices, in the cell that this task works for: see `Wakeups.start`."""
    runtime.part(Wakeups).start()
