"""The requests of this process that listen for messages: they read, or are blocked until a message comes.

The read of a blocked request can *join* the batch that stores a message for it: the read is one more operation of this
transaction, so the message is handed out at the commit, without another round trip.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from store.messages import MessageRow
from store.notices.caches import LONGEST_CACHED_SECONDS
from store.notices.emptied import Emptied


class Read(Protocol):
    """The read that a waiting request would make, which may join a batch. `joined` is called with the batch's end."""

    joined: "Joined | None"
    settled: "Callable[[Exception | None], None] | None"

    @property
    def most(self) -> int:
        """The maximum number of messages that the read takes."""

    @property
    def may_join(self) -> bool:
        """Whether a batch can write this read now."""

    @property
    def taken(self) -> int:
        """How many messages the read has taken; 0 if the batch left the read out."""

    @property
    def is_all(self) -> bool:
        """Whether the read has taken all visible messages, so that another read would find none."""

    def see(self, stored: Iterable[MessageRow]) -> None:
        """Called with the messages that the batch has stored, so that the read need not fetch them from PostgreSQL."""


@dataclass(slots=True, eq=False)  # a deque finds an object by its identity
class Blocked:
    """A request that waits for a message."""

    waiter: "Waiter"
    wake_up: asyncio.Future[None]
    read: Read | None
    # When the configuration for the read was looked up, and the number of changes at that time: the read may join a
    # batch while both are recent.
    since: float
    changes: int

    def wake(self) -> bool:
        """Wakes the request. Returns False if it was awake already."""
        if self.wake_up.done():
            return False
        self.wake_up.set_result(None)
        return True

    def leave(self) -> None:
        """Removes the request from the blocked ones of all its topics."""
        for listeners in self.waiter.topics.values():
            with contextlib.suppress(ValueError):
                listeners.blocked.remove(self)


@dataclass(slots=True)
class Listeners:
    """The requests of one reader that listen to a topic: blocked, joined to a batch, or reading now."""

    blocked: deque[Blocked] = field(default_factory=deque)
    joined: list["Joined"] = field(default_factory=list)
    reading: int = 0
    # The messages published since the first request listened.
    published: int = 0
    # Messages published while no request was blocked. For each, one request that is reading reads again, because its
    # read may have begun before the commit.
    missed: int = 0

    def wake(self, messages: int, writer: object = None) -> None:
        """Wakes a waiting request for each new message that no joined read takes, the longest waiting first."""
        self.published += messages
        for joined in self.joined:
            messages -= joined.expect(messages, writer)
        self.wake_blocked(messages)

    def wake_blocked(self, messages: int) -> None:
        """Wakes listeners as `wake` does, for messages that were already counted as published."""
        while self.blocked and messages:
            messages -= self.blocked.popleft().wake()
        self.missed = min(self.missed + messages, self.reading)

    def take_missed(self) -> bool:
        """Whether a message was published while a request was reading. Such a request must read again.

        Each message is counted for one request only.
        """
        self.missed -= (missed := self.missed > 0)
        return missed

    @property
    def is_unused(self) -> bool:
        return not (self.blocked or self.reading or self.joined)


class Joined:
    """A read that has joined a batch. Called once, when the batch is answered, with the problem or None."""

    def __init__(self, blocked: Blocked, listeners: Listeners, read: Read, writer: object) -> None:
        self._blocked = blocked
        self._listeners = listeners
        self._read = read
        self._writer = writer
        # How many messages of the commit the read will take; these messages wake no other request.
        self._expected = 0
        # Whether another writer has published a message that the read may not have seen.
        self._is_late = False
        for each in blocked.waiter.topics.values():
            each.joined.append(self)
        read.joined = read.settled = self

    def expect(self, messages: int, writer: object) -> int:
        """How many of these new messages the read will take.

        The read sees every message that its own writer has sent before it.
        """
        self._is_late |= writer is not self._writer
        taken = min(messages, self._read.most - self._expected)
        self._expected += taken
        return taken

    def __call__(self, problem: Exception | None) -> None:
        waiter, taken = self._blocked.waiter, self._read.taken
        for each in waiter.topics.values():
            each.joined.remove(self)
        self._blocked.wake()
        if taken and self._expected > taken:  # a read that took no message is repeated in any case
            self._listeners.wake_blocked(self._expected - taken)
        elif self._read.is_all and not self._is_late:
            waiter.look()
            waiter.found_all()


class Waiter:
    """A request that is notified of messages in its topics while it reads them, and waits if it finds none."""

    def __init__(self, topics: Mapping[int, Listeners], reader: Hashable, emptied: Emptied, changes: int) -> None:
        self.topics = topics
        # Two topics of a group share the retry topic, so the topics are part of the key.
        self._reader = (reader, frozenset(topics))
        self._emptied = emptied
        self._changes = changes
        self._since = time.monotonic()
        self.look()

    def look(self) -> None:
        """Notes that a read begins: the read may not see messages that are published from now on."""
        self._published = self._all_published()

    @property
    def saw_nothing(self) -> bool:
        """Whether nothing was published since the read began."""
        return self._all_published() == self._published

    def _all_published(self) -> int:
        return sum(listeners.published for listeners in self.topics.values())

    def found_all(self) -> None:
        """Notes that the read has taken all visible messages: another read finds none until a message is published."""
        if self.saw_nothing:
            self._emptied.note(self.topics, self._reader)

    @property
    def empty_seconds(self) -> float | None:
        """For how many seconds the reader has known that there is no message; None if the request must read."""
        return self._emptied.seconds(self.topics, self._reader)

    async def wait(self, seconds: float, gone: asyncio.Future[Any] | None = None, read: Read | None = None) -> None:
        """Waits until one of the topics has a new message, the time is over, or `gone` (the caller hung up) is done.

        Returns at once if a message was published while the request was reading. If `read` has joined a batch, its
        result is set at the return.
        """
        listening = self.topics.values()
        if any(listeners.take_missed() for listeners in listening):
            return
        wake_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        blocked = Blocked(self, wake_up, read, self._since, self._changes)
        for listeners in listening:
            listeners.reading -= 1
            listeners.blocked.append(blocked)
        try:
            ends: set[asyncio.Future[Any]] = {wake_up} if gone is None else {wake_up, gone}
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if read is not None and read.joined is not None:
                # The batch may hand messages to the read, which must not be lost.
                await wake_up
        finally:
            blocked.leave()
            for listeners in listening:
                listeners.reading += 1
        if gone is not None and gone.done():
            # A message may have woken this request just before its caller left: another request is woken in its place.
            for listeners in listening:
                listeners.wake_blocked(1)


def join(listeners: Listeners, changes: int, writer: object) -> Read | None:
    """Makes the longest blocked request join a writer's next batch. Returns its read, or None if it may not join."""
    if not listeners.blocked:
        return None
    blocked = listeners.blocked[0]
    read, is_known = blocked.read, time.monotonic() - blocked.since < LONGEST_CACHED_SECONDS
    # A request that was woken by another topic reads by itself.
    is_asleep = not blocked.wake_up.done()
    if read is None or not (is_asleep and is_known and blocked.changes == changes and read.may_join):
        return None
    blocked.leave()
    Joined(blocked, listeners, read, writer)
    return read
