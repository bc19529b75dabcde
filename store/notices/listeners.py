"""The requests of this process that listen for messages: awake or blocked.

A blocked request whose read is known beforehand *joins* the batch that stores a message for it: the read is one more
operation of that transaction, so that the message is handed out at its commit, without another round trip.
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
    """The read of a blocked request, which may be one operation of a batch; `joined` is called once it is answered."""

    joined: "Joined | None"
    settled: "Callable[[Exception | None], None] | None"

    @property
    def most(self) -> int:
        """How many messages it takes at most."""

    @property
    def may_join(self) -> bool:
        """Whether it can be written now."""

    @property
    def taken(self) -> int:
        """How many messages it has taken; 0 where it was left out."""

    @property
    def is_all(self) -> bool:
        """Whether it has taken all that was there."""

    def see(self, stored: Iterable[MessageRow]) -> None:
        """What the others of the batch have stored is not read back."""


@dataclass(slots=True, eq=False)  # found in a deque by identity
class Blocked:
    """A request that waits for a message."""

    waiter: "Waiter"
    wake_up: asyncio.Future[None]
    read: Read | None
    # What its read was looked up with holds for so long, as long as nothing of the configuration changes.
    since: float
    changes: int

    def wake(self) -> bool:
        """False when it was awake."""
        if self.wake_up.done():
            return False
        self.wake_up.set_result(None)
        return True

    def leave(self) -> None:
        """It is blocked no more, in none of its topics."""
        for listeners in self.waiter.topics.values():
            with contextlib.suppress(ValueError):
                listeners.blocked.remove(self)


@dataclass(slots=True)
class Listeners:
    """The requests of one reader that listen to a topic: blocked, in a batch, or reading just now."""

    blocked: deque[Blocked] = field(default_factory=deque)
    joined: list["Joined"] = field(default_factory=list)
    reading: int = 0
    # All messages, from the first request that listened on.
    published: int = 0
    # Messages published while no request was blocked. Each makes one reading request read again: its read may have
    # begun before the commit.
    missed: int = 0

    def wake(self, messages: int, writer: object = None) -> None:
        """Wakes one blocked request per message that no joined read takes, the longest blocked first."""
        self.published += messages
        for joined in self.joined:
            messages -= joined.expect(messages, writer)
        self.wake_blocked(messages)

    def wake_blocked(self, messages: int) -> None:
        """As `wake`, of messages that are known already."""
        while self.blocked and messages:
            messages -= self.blocked.popleft().wake()
        self.missed = min(self.missed + messages, self.reading)

    def take_missed(self) -> bool:
        """Whether a message was published while the request was reading. It counts for this request alone."""
        self.missed -= (missed := self.missed > 0)
        return missed

    @property
    def is_unused(self) -> bool:
        return not (self.blocked or self.reading or self.joined)


class Joined:
    """A read that has joined a batch. Called once, when the batch is answered, with its problem if it has one."""

    def __init__(self, blocked: Blocked, listeners: Listeners, read: Read, writer: object) -> None:
        self._blocked = blocked
        self._listeners = listeners
        self._read = read
        self._writer = writer
        # The messages of the commit that the read takes: they wake no other request.
        self._expected = 0
        # Something was published that the read may not have seen.
        self._is_late = False
        for each in blocked.waiter.topics.values():
            each.joined.append(self)
        read.joined = read.settled = self

    def expect(self, messages: int, writer: object) -> int:
        """How many of these messages, just published, the read takes. It sees what its writer has sent before it."""
        self._is_late |= writer is not self._writer
        taken = min(messages, self._read.most - self._expected)
        self._expected += taken
        return taken

    def __call__(self, problem: Exception | None) -> None:
        waiter, taken = self._blocked.waiter, self._read.taken
        for each in waiter.topics.values():
            each.joined.remove(self)
        self._blocked.wake()
        if taken and self._expected > taken:  # with nothing taken it reads again by itself
            self._listeners.wake_blocked(self._expected - taken)
        elif self._read.is_all and not self._is_late:
            waiter.look()
            waiter.found_all()


class Waiter:
    """One request that listens to its topics while it reads them, and waits when it found no message."""

    def __init__(self, topics: Mapping[int, Listeners], reader: Hashable, emptied: Emptied, changes: int) -> None:
        self.topics = topics
        # Two topics of a group share its retries, and are read apart.
        self._reader = (reader, frozenset(topics))
        self._emptied = emptied
        self._changes = changes
        self._since = time.monotonic()
        self.look()

    def look(self) -> None:
        """A read begins: what is published from here on it may not see."""
        self._published = self._all_published()

    @property
    def saw_nothing(self) -> bool:
        """Whether nothing was published since the read began."""
        return self._all_published() == self._published

    def _all_published(self) -> int:
        return sum(listeners.published for listeners in self.topics.values())

    def found_all(self) -> None:
        """The read has taken all that was there: until something is published the next one would find nothing."""
        if self.saw_nothing:
            self._emptied.note(self.topics, self._reader)

    @property
    def empty_seconds(self) -> float | None:
        """How long ago its reader has found nothing, with nothing published since; None where it has to read."""
        return self._emptied.seconds(self.topics, self._reader)

    async def wait(self, seconds: float, gone: asyncio.Future[Any] | None = None, read: Read | None = None) -> None:
        """Waits until one of the topics has a new message, the time is over, or `gone` (the caller hung up) is done.

        Returns at once when a message was published since the request began to listen. A `read` that has joined a batch
        has its result then.
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
                # What it is handed must not be lost.
                await wake_up
        finally:
            blocked.leave()
            for listeners in listening:
                listeners.reading += 1
        if gone is not None and gone.done():
            # A message may have woken this request as well: another request reads it instead.
            for listeners in listening:
                listeners.wake_blocked(1)


def join(listeners: Listeners, changes: int, writer: object) -> Read | None:
    """Has the request that is blocked for longest join a writer's next batch, if it may: its read goes with that."""
    if not listeners.blocked:
        return None
    blocked = listeners.blocked[0]
    read, is_known = blocked.read, time.monotonic() - blocked.since < LONGEST_CACHED_SECONDS
    # What another of its topics has woken reads by itself.
    is_asleep = not blocked.wake_up.done()
    if read is None or not (is_asleep and is_known and blocked.changes == changes and read.may_join):
        return None
    blocked.leave()
    Joined(blocked, listeners, read, writer)
    return read
