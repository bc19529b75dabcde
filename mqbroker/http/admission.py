"""Admission: new work begins in the order of its arrival, so much per turn of the event loop, or is refused at once.

A process that begins all that has arrived has longer and longer turns under more load than it can serve: refusals, ends
and acks would come as late as everything else.

1. What is no new work begins at once.
2. New work begins at once while none waits and fewer than PER_TURN requests have begun in this turn. Else it waits.
3. Each turn begins the next PER_TURN of those that wait.
4. While the first one has waited for too long, new work is refused where it is read, without a task.
"""

import asyncio
from collections import deque
from typing import NamedTuple, Protocol

from mqbroker.http.exchange import Exchange

# Some 6 ms of work: what is read meanwhile is answered, or refused, after one more turn.
PER_TURN = 128
# Of the bodies that wait; the process's budget of bodies counts them from their beginning.
MAX_BYTES = 16 * 1024 * 1024


class Serve(Protocol):
    """Serves the exchanges of a process."""

    async def __call__(self, exchange: Exchange) -> None:
        """Answers it."""

    def begins(self, exchange: Exchange) -> bool:
        """Whether it is new work, which may wait or be refused while there is too much of it."""

    def is_full(self, waited: float) -> bool:
        """Whether new work is refused now, when the first one that has not begun has waited for so many seconds."""

    def refuse(self, exchange: Exchange) -> None:
        """Answers new work, whose body has arrived whole, that there is too much of it."""


class Beginner(Protocol):
    """The connection of an exchange."""

    def begin(self, exchange: Exchange) -> None:
        """Serves it in a task."""


class Place(NamedTuple):
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
        self._waiting: deque[Place] = deque()
        self._bytes = 0
        # Of this turn of the event loop.
        self._begun = 0

    def take(self, connection: Beginner, exchange: Exchange) -> None:
        """Begins an exchange, has it wait, or refuses it."""
        if not self._serve.begins(exchange):
            connection.begin(exchange)
        elif self._is_full():
            self._refuse(connection, exchange)
        elif self._waiting or self._begun >= PER_TURN:
            place = Place(self._loop.time(), exchange.unread_bytes, connection, exchange)
            self._waiting.append(place)
            self._bytes += place.size
        else:
            self._begin(connection, exchange)

    def begin_all(self) -> None:
        """Begins what waits: the process ends."""
        while self._waiting:
            self._begin_next()

    def _is_full(self) -> bool:
        waited = self._loop.time() - self._waiting[0].since if self._waiting else 0.0
        return self._bytes > MAX_BYTES or self._serve.is_full(waited)

    def _refuse(self, connection: Beginner, exchange: Exchange) -> None:
        if exchange.is_whole:
            self._serve.refuse(exchange)
        else:
            # A body that is not read ends its connection: a small one is read to its end first.
            exchange.is_refused = True
            connection.begin(exchange)

    def _begin(self, connection: Beginner, exchange: Exchange) -> None:
        if not self._begun:
            self._loop.call_soon(self._turn)
        self._begun += 1
        connection.begin(exchange)

    def _turn(self) -> None:
        self._begun = 0
        while self._waiting and self._begun < PER_TURN:
            self._begin_next()

    def _begin_next(self) -> None:
        place = self._waiting.popleft()
        self._bytes -= place.size
        if not place.exchange.is_hung_up:
            self._begin(place.connection, place.exchange)
