"""Admission: new work begins in the order of its arrival, so much per turn of the event loop, or is refused at once.

A process that begins all that has arrived has longer and longer turns under more load than it can serve: refusals, ends
and acks would come as late as everything else, and PostgreSQL, which is sent a batch in some turn, would wait for it.

1. What is no new work begins in the next turn: all that a turn reads from its sockets is begun together behind it. To
   serve each request before the next one is read took 63 µs of CPU for a send over 128 connections instead of 54.
2. New work begins with it while none waits, fewer than BEGUN_PER_TURN requests have begun in this turn, and there is
   room for what it writes. Else it waits.
3. Each turn begins the next of those that wait. Where there is no room, the next answer has it looked for again: that
   answer comes from a batch that has ended, and the next batch takes what was in the way.
4. While the first one has waited for too long, new work is to be refused, without a task; without an exchange, too,
   where it has come whole. Each turn sends one refusal for two requests that begin in it, REFUSED_PER_TURN at least,
   and the others in the next turns: a crowd that comes again at once has to wait for its refusals, and work does not. A
   refusal takes a third of the time of a message, so that all refusals take a seventh of the process.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, Protocol

from mqbroker.wire.exchange import Exchange
from mqbroker.wire.whole import Whole

# Some 8 ms of work: what is read meanwhile is answered, or refused, after one more turn.
BEGUN_PER_TURN = 128
# Less than 1 ms. Where nothing begins, because PostgreSQL answers nothing, turns that only refuse follow one another.
REFUSED_PER_TURN = 32
# Of the bodies that wait; the process's budget of bodies counts them from their beginning.
MAX_BYTES = 16 * 1024 * 1024


class Serve(Protocol):
    """Serves the exchanges of a process."""

    def __call__(self, exchange: Exchange) -> Awaitable[None] | None:
        """Answers it. What this returns is awaited in a task; None where the answer follows without one."""

    def begins(self, exchange: Exchange) -> bool:
        """Whether it is new work, which may wait or be refused while there is too much of it."""

    def has_room(self) -> bool:
        """Whether what new work writes would go soon. Where not, an answer to a request that began comes before."""

    def is_full(self, waited: float) -> bool:
        """Whether new work is refused now, when the first one that has not begun has waited for so many seconds."""

    def refusal(self, target: bytes, date: bytes) -> bytes | None:
        """The bytes that refuse a POST to a target; None where it is no new work."""

    def refuse(self, exchange: Exchange) -> None:
        """Answers new work, whose body has arrived whole, that there is too much of it."""


class Beginner(Protocol):
    """The connection of an exchange."""

    def begin(self, exchange: Exchange) -> None:
        """Serves it."""


class NewWork(NamedTuple):
    """New work that waits, since a time of the event loop's clock."""

    since: float
    size: int
    connection: Beginner
    exchange: Exchange


class Admission:
    """The new work of one process that has not begun."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[NewWork] = deque()
        self._bytes = 0
        # What sends a refusal; the body has arrived whole and is dropped.
        self._to_refuse: deque[Callable[[], None]] = deque()
        # What the next turn of the event loop begins.
        self._next: list[tuple[Beginner, Exchange]] = []
        # New work of this turn.
        self._begun = 0
        self._is_scheduled = False
        self._whole = Whole()

    def take(self, connection: Beginner, exchange: Exchange) -> None:
        """Begins an exchange, has it wait, or refuses it."""
        if not self._serve.begins(exchange):
            self._begin(connection, exchange)
        elif self.is_full():
            self._refuse(connection, exchange)
        elif self._waiting or not self._may_begin():
            work = NewWork(self._loop.time(), exchange.unread_bytes, connection, exchange)
            self._waiting.append(work)
            self._bytes += work.size
        else:
            self._begun += 1
            self._begin(connection, exchange)

    def refusal(self, data: bytes, date: bytes) -> bytes | None:
        """The answer to one whole request of new work while `is_full`, read no further than that.

        It is sent by what is given to `refuse_soon`.
        """
        target = self._whole.target_of(data)
        return None if target is None else self._serve.refusal(target, date)

    def refuse_soon(self, refuse: Callable[[], None]) -> None:
        """Has a refusal sent in one of the next turns."""
        self._to_refuse.append(refuse)
        self._schedule()

    def go_on(self) -> None:
        """Looks for room again in the next turn: an exchange has been answered."""
        if self._waiting:
            self._schedule()

    def begin_all(self) -> None:
        """Begins and refuses what waits: the process ends."""
        while self._waiting:
            self._begin_next()
        while self._to_refuse:
            self._to_refuse.popleft()()

    def is_full(self) -> bool:
        """Whether new work is refused now."""
        waited = self._loop.time() - self._waiting[0].since if self._waiting else 0.0
        return self._bytes > MAX_BYTES or self._serve.is_full(waited)

    def _may_begin(self) -> bool:
        return self._begun < BEGUN_PER_TURN and self._serve.has_room()

    def _refuse(self, connection: Beginner, exchange: Exchange) -> None:
        if not exchange.is_whole:
            # A body that is not read ends its connection: a small one is read to its end first.
            exchange.is_refused = True
            connection.begin(exchange)
        else:
            exchange.drop()
            self.refuse_soon(partial(self._refuse_whole, exchange))

    def _refuse_whole(self, exchange: Exchange) -> None:
        if not exchange.is_hung_up:
            self._serve.refuse(exchange)

    def _begin(self, connection: Beginner, exchange: Exchange) -> None:
        if not self._is_scheduled:
            self._schedule()
        self._next.append((connection, exchange))

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        self._begun = 0
        begun, self._next = self._next, []
        for connection, exchange in begun:
            connection.begin(exchange)
        while self._waiting and self._may_begin():
            self._begin_next()
        for _ in range(min(len(self._to_refuse), max(len(begun) // 2, REFUSED_PER_TURN))):
            self._to_refuse.popleft()()
        if self._to_refuse:
            self._schedule()

    def _begin_next(self) -> None:
        work = self._waiting.popleft()
        self._bytes -= work.size
        if not work.exchange.is_hung_up:
            self._begun += 1
            self._begin(work.connection, work.exchange)
