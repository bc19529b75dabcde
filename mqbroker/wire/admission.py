"""Admission: new work begins in the order of its arrival, a limited number per turn of the event loop, or is refused.

Under overload a process that begins all arrived requests has longer and longer turns: refusals, ends and acks would be
as late as new work, and PostgreSQL would wait for the turn in which the next batch is sent.

1. Requests that are not new work begin in the next turn: all requests that one turn reads from the sockets begin
   together after it. Serving each request before reading the next one took 63 µs of CPU for a send over 128 connections
   instead of 54.
2. New work begins with them if no new work waits, fewer than BEGUN_PER_TURN requests have begun in this turn, and the
   next batch has room. Otherwise the new work waits.
3. Each turn begins the next waiting requests. If there is no room, the room is checked again after the next answer: an
   answer means that a batch has ended, and that the next batch has taken waiting operations.
4. While the first waiting request has waited for too long, new work is refused without a task, and if it has arrived
   whole, also without an exchange. Each turn sends one refusal for every two requests that begin in it, at least
   REFUSED_PER_TURN, and further refusals in the next turns: so callers that repeat at once wait for their refusals, and
   admitted work does not wait. A refusal takes a third of the time of a message, so all refusals take a seventh of the
   process's time.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, Protocol

from mqbroker.wire.exchange import Exchange
from mqbroker.wire.whole import Whole

# The maximum number of requests that begin in a turn: about 8 ms of work. Requests that are read meanwhile wait for one
# more turn.
BEGUN_PER_TURN = 128
# The fewest refusals that a turn may send, in less than 1 ms. While PostgreSQL does not answer and no work begins,
# turns only refuse.
REFUSED_PER_TURN = 32
# The most bytes of bodies of waiting requests. The process's budget of bodies counts a body once its request begins.
MAX_BYTES = 16 * 1024 * 1024


class Serve(Protocol):
    """A function that serves one exchange: a request and its answer."""

    def __call__(self, exchange: Exchange) -> Awaitable[None] | None:
        """Answers the exchange. A returned coroutine is awaited in a task; None if the answer needs no task."""

    def begins(self, exchange: Exchange) -> bool:
        """Whether the exchange is new work, which may wait, or be refused if too much is waiting."""

    def has_room(self) -> bool:
        """Whether the next batch has room for new work. If not, an answer to an earlier request comes first.

        Also False while new work is refused because too much waits to be written.
        """

    def is_full(self, waited: float) -> bool:
        """Whether new work is refused now, given the seconds that the first waiting request has waited."""

    def refusal(self, target: bytes, date: bytes) -> bytes | None:
        """The bytes that refuse a POST to a target; None if the target is not new work."""

    def refuse(self, exchange: Exchange) -> None:
        """Refuses an exchange of new work, because too much is waiting. The whole body has arrived."""


class Beginner(Protocol):
    """The connection of an exchange."""

    def begin(self, exchange: Exchange) -> None:
        """Serves it."""


class NewWork(NamedTuple):
    """A waiting request of new work, and the time when its wait began, by the event loop's clock."""

    since: float
    size: int
    connection: Beginner
    exchange: Exchange


class Admission:
    """The new work of one process that has not begun yet."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[NewWork] = deque()
        self._bytes = 0
        # Functions that each send the refusal of one request, whose whole body has arrived and was dropped.
        self._to_refuse: deque[Callable[[], None]] = deque()
        # The exchanges that the next turn of the event loop begins.
        self._next: list[tuple[Beginner, Exchange]] = []
        # How many requests of new work have begun in this turn of the event loop.
        self._begun = 0
        self._is_scheduled = False
        self._whole = Whole()

    def take(self, connection: Beginner, exchange: Exchange) -> None:
        """Lets an exchange begin or wait, or refuses it."""
        if not self._serve.begins(exchange):
            self._begin(connection, exchange)
        elif not self._waiting and self._may_begin():
            # The usual case comes first. If the next batch has room and no request waits, new work is not refused.
            self._begun += 1
            self._begin(connection, exchange)
        elif self.is_full():
            self._refuse(connection, exchange)
        else:
            work = NewWork(self._loop.time(), exchange.unread_bytes, connection, exchange)
            self._waiting.append(work)
            self._bytes += work.size

    def refusal(self, data: bytes, date: bytes) -> bytes | None:
        """The refusal for a request that has arrived whole; None if it is not new work. Called while `is_full`.

        The caller then calls `refuse_soon` with a function that sends the refusal.
        """
        target = self._whole.target_of(data)
        return None if target is None else self._serve.refusal(target, date)

    def refuse_soon(self, refuse: Callable[[], None]) -> None:
        """Calls `refuse` in one of the next turns of the event loop. `refuse` is a function that sends a refusal."""
        self._to_refuse.append(refuse)
        self._schedule()

    def go_on(self) -> None:
        """Called when an exchange has been answered: the next turn then checks whether waiting requests have room."""
        if self._waiting:
            self._schedule()

    def begin_all(self) -> None:
        """Begins or refuses all waiting requests, because the process ends."""
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
            # A connection is closed if a body is left unread, so a small body is read to its end first.
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
