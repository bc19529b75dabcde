"""Wakes whoever waits for messages: at once in this process, by one coalesced NOTIFY in the others.

The NOTIFY has a connection of its own: inside the writing transaction it would take a lock of the whole database at the
commit. Nothing depends on it: every waiter looks again by itself after a while.
"""

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Collection, Iterable
from typing import Any

import psycopg

from store import database
from store.errors import Refusal
from store.queues import Entry
from store.statements import Statement

logger = logging.getLogger(__name__)

NOTIFY_VISIBLE = Statement(__file__, "notify_visible")
CHANNEL = "mqbroker_visible"
COALESCE_SECONDS = 0.015
RECONNECT_SECONDS = 1.0
# A payload is at most 8000 bytes; a topic takes some 20 of them.
MAX_TOPICS_PER_NOTIFY = 300


class Wakeups:
    """The waiters of one process, by topic and reader; each new message wakes one waiter of each reader."""

    def __init__(self) -> None:
        self._waiters: dict[int, dict[Any, deque[asyncio.Future[None]]]] = {}
        # How often each topic's waiters were woken, whether or not there were any.
        self._woken: Counter[int] = Counter()
        self._unsent: Counter[int] = Counter()
        self._sender: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None

    def heard(self, topic_ids: Iterable[int]) -> int:
        """How often the topics' waiters were woken until now; to be asked before one looks and waits."""
        return sum(self._woken[topic] for topic in topic_ids)

    async def wait(
        self,
        topic_ids: Collection[int],
        reader: Any,
        seconds: float,
        gone: asyncio.Future[Any] | None = None,
        *,
        heard: int,
    ) -> None:
        """Waits until a message of one of the topics becomes visible, the time is over, or the waiter is `gone`.

        Not at all when more than `heard` was heard of the topics: the message came while one was still looking.
        """
        if self.heard(topic_ids) != heard:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if gone is not None:
            gone.add_done_callback(lambda _: _wake(waiter))
        lanes = [self._waiters.setdefault(topic, {}).setdefault(reader, deque()) for topic in topic_ids]
        for lane in lanes:
            lane.append(waiter)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiter, seconds)
        finally:
            self._forget(waiter, topic_ids, reader)

    def _forget(self, waiter: asyncio.Future[None], topic_ids: Collection[int], reader: Any) -> None:
        for topic in topic_ids:
            readers = self._waiters.get(topic, {})
            lane = readers.get(reader)
            if lane is None:
                continue
            with contextlib.suppress(ValueError):
                lane.remove(waiter)
            if not lane:
                del readers[reader]
            if not readers:
                self._waiters.pop(topic, None)

    def wake(self, topic_id: int, messages: int) -> None:
        """Wakes up to `messages` waiters of each reader of the topic, who has waited longest first."""
        self._woken[topic_id] += 1
        for lane in self._waiters.get(topic_id, {}).values():
            woken = 0
            while lane and woken < messages:
                waiter = lane.popleft()
                woken += _wake(waiter)

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
            payload = ",".join(f"{topic_id}:{messages}" for topic_id, messages in told.items())
            with contextlib.suppress(Refusal):
                await database.read(NOTIFY_VISIBLE, {"channel": CHANNEL, "payload": payload})
            # The first goes at once; what comes meanwhile goes together.
            await asyncio.sleep(COALESCE_SECONDS)

    def listen(self) -> None:
        """Starts to hear of what other processes make visible."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen_forever(), name="listen")

    async def _listen_forever(self) -> None:
        while True:
            try:
                connection = await database.connect("mqbroker-listener")
                async with connection:
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    async for notice in connection.notifies():
                        self._hear(notice.payload)
            except psycopg.Error as problem:
                logger.warning("not listening: %s", type(problem).__name__)
            await asyncio.sleep(RECONNECT_SECONDS)

    def _hear(self, payload: str) -> None:
        for part in payload.split(","):
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


wakeups = Wakeups()
visible = wakeups.visible
tell = wakeups.tell
heard = wakeups.heard
wait = wakeups.wait
listen = wakeups.listen
