"""Wakes whoever waits for messages: at once in this process, by one coalesced NOTIFY in the others.

The NOTIFY has a connection of its own: inside the writing transaction it would take a lock of the whole database at the
commit. Nothing depends on it: every waiter looks again by itself after a while.
"""

import asyncio
import contextlib
import secrets
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import structlog

from store import runtime
from store.db import connections
from store.db.statements import Statement
from store.errors import Refusal
from store.queues import Entry
from store.rows import Notified

logger = structlog.stdlib.get_logger(__name__)

NOTIFY_VISIBLE = Statement(__file__, "notify_visible", Notified)
CHANNEL = "mqbroker_visible"
COALESCE_SECONDS = 0.015
RECONNECT_SECONDS = 1.0
# A payload is at most 8000 bytes; a topic takes some 20 of them.
MAX_TOPICS_PER_NOTIFY = 300


@dataclass(slots=True)
class Lane:
    """Those of one reader who attend to a topic: who waits for its next message, and how many are looking just now."""

    waiters: deque[asyncio.Future[None]] = field(default_factory=deque)
    looking: int = 0
    # Messages that found nobody waiting: each has one of the lookers look once more, for it may have come too late for
    # his first look.
    missed: int = 0

    def wake(self, messages: int) -> None:
        """Wakes one waiter for each message, who has waited longest first."""
        while self.waiters and messages:
            messages -= _wake(self.waiters.popleft())
        self.missed = min(self.missed + messages, self.looking)

    def has_missed(self) -> bool:
        """Whether a message came while one was looking; that one looks again."""
        self.missed -= (missed := self.missed > 0)
        return missed

    @property
    def is_empty(self) -> bool:
        return not (self.waiters or self.looking)


class Attention:
    """One reader's request while it looks at its topics or waits for them."""

    def __init__(self, lanes: list[Lane]) -> None:
        self._lanes = lanes

    async def wait(self, seconds: float, gone: asyncio.Future[Any] | None = None) -> None:
        """Waits until a message of one of the topics becomes visible, the time is over, or the waiter is `gone`.

        Not at all when one came while the request was looking.
        """
        if any(lane.has_missed() for lane in self._lanes):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if gone is not None:
            gone.add_done_callback(lambda _: _wake(waiter))
        for lane in self._lanes:
            lane.looking -= 1
            lane.waiters.append(waiter)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiter, seconds)
        finally:
            for lane in self._lanes:
                lane.looking += 1
                with contextlib.suppress(ValueError):
                    lane.waiters.remove(waiter)
        if gone is not None and gone.done():
            # A message may have woken it all the same: somebody else looks in its place.
            for lane in self._lanes:
                lane.wake(1)


class Wakeups:
    """Who attends to which topics in one process; each new message wakes one waiter of each reader."""

    def __init__(self) -> None:
        self._lanes: dict[int, dict[Any, Lane]] = {}
        # Its own notices come back to a process, which has woken its waiters long before.
        self._name = secrets.token_hex(8)
        self._unsent: Counter[int] = Counter()
        self._sender: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def attending(self, topic_ids: Collection[int], reader: Any) -> Iterator[Attention]:
        """Whatever becomes visible in the topics from now on wakes the reader's request, or has it look again."""
        lanes = [self._lanes.setdefault(topic, {}).setdefault(reader, Lane()) for topic in topic_ids]
        for lane in lanes:
            lane.looking += 1
        try:
            yield Attention(lanes)
        finally:
            for lane in lanes:
                lane.looking -= 1
                lane.missed = min(lane.missed, lane.looking)
            self._forget(topic_ids, reader)

    def _forget(self, topic_ids: Collection[int], reader: Any) -> None:
        for topic in topic_ids:
            readers = self._lanes.get(topic, {})
            if reader in readers and readers[reader].is_empty:
                del readers[reader]
            if not readers:
                self._lanes.pop(topic, None)

    def wake(self, topic_id: int, messages: int) -> None:
        """Wakes up to `messages` waiters of each reader of the topic."""
        for lane in self._lanes.get(topic_id, {}).values():
            lane.wake(messages)

    def visible(self, entries: Iterable[Entry]) -> None:
        """Tells of entries that were just committed."""
        self.tell(Counter(entry.topic_id for entry in entries))

    def tell(self, topics: Counter[int]) -> None:
        """Tells of so many messages per topic that may be received now."""
        for topic_id, messages in topics.items():
            self.wake(topic_id, messages)
        self._unsent.update(topics)
        if self._unsent and (self._sender is None or self._sender.done()):
            self._sender = asyncio.create_task(self._send_soon(), name="notify")

    async def _send_soon(self) -> None:
        while self._unsent:
            told = dict(self._unsent.most_common(MAX_TOPICS_PER_NOTIFY))
            for topic_id in told:
                del self._unsent[topic_id]
            payload = f"{self._name};" + ",".join(f"{topic_id}:{messages}" for topic_id, messages in told.items())
            with contextlib.suppress(Refusal):
                await connections.read(NOTIFY_VISIBLE, {"channel": CHANNEL, "payload": payload})
            # The first goes at once; what comes meanwhile goes together.
            await asyncio.sleep(COALESCE_SECONDS)

    def listen(self) -> None:
        """Starts to hear of what other processes make visible."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen_forever(), name="listen")

    async def _listen_forever(self) -> None:
        while True:
            try:
                connection = await connections.connect("mqbroker-listener")
                async with connection:
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    async for notice in connection.notifies():
                        self._hear(notice.payload)
            except psycopg.Error as problem:
                logger.warning("not listening for other processes", problem=type(problem).__name__)
            await asyncio.sleep(RECONNECT_SECONDS)

    def _hear(self, payload: str) -> None:
        name, _, told = payload.partition(";")
        if name == self._name:
            return
        for part in told.split(","):
            topic_id, _, messages = part.partition(":")
            self.wake(int(topic_id), int(messages))

    async def close(self) -> None:
        """Stops listening and telling."""
        for task in (self._listener, self._sender):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self._listener = self._sender = None


def _wake(waiter: asyncio.Future[None]) -> bool:
    """Wakes a waiter; False when it was awake."""
    if waiter.done():
        return False
    waiter.set_result(None)
    return True


def visible(entries: Iterable[Entry]) -> None:
    """Wakes waiters of this process and of the others for entries that were just committed."""
    runtime.part(Wakeups).visible(entries)


def tell(topics: Counter[int]) -> None:
    """Wakes waiters of this process and of the others for so many messages per topic."""
    runtime.part(Wakeups).tell(topics)


def attending(topic_ids: Collection[int], reader: Any) -> contextlib.AbstractContextManager[Attention]:
    """Attends to the topics for a request of the reader; as `Wakeups.attending`."""
    return runtime.part(Wakeups).attending(topic_ids, reader)


def listen() -> None:
    """Starts to hear of what other processes make visible."""
    runtime.part(Wakeups).listen()
