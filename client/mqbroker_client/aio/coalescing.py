"""Coalescing among the tasks of one event loop: calls that wait while another call is under way are sent together."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mqbroker_client.core import errors
from mqbroker_client.core.calls import Call, Result
from mqbroker_client.core.parts import Part, taken
from mqbroker_client.core.retries import PASSING

#: Turns of the event loop in which the tasks that were just answered can make their next calls.
TURNS = 3

Alone = Callable[[float], Awaitable[Any]]
Together = Callable[[Sequence[Call[Any]], float], Awaitable[Sequence[Any]]]


class Waiting(Part):
    """A call whose task awaits the future `answer`. The result None means: the shared request failed, so the task sends
    the call alone.
    """

    __slots__ = ("alone", "answer", "give_up_at")

    def __init__(self, call: Call[Any], seconds: float, alone: Alone) -> None:
        super().__init__(call)
        self.alone = alone
        self.give_up_at = time.monotonic() + seconds
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class AsyncLane:
    """Combines the calls of the tasks of one event loop. `mqbroker_client.core.coalescing.Lane` does this for threads.

    A separate task sends the shared request, so that the cancellation of one caller does not cancel other calls.
    """

    def __init__(self, together: Together) -> None:
        self._together = together
        self._under_way = False
        self._waiting: deque[Waiting] = deque()
        self._sending: asyncio.Task[None] | None = None

    def waiting(self) -> int:
        """The number of calls that wait for the running request."""
        return len(self._waiting)

    async def ask(self, call: Call[Result], seconds: float, alone: Callable[[float], Awaitable[Result]]) -> Result:
        """The result of one call, sent alone or with others. Raises the call's `BrokerError`."""
        if not self._under_way:
            self._under_way = True
            try:
                return await alone(seconds)
            finally:
                self._hand_on()
        mine = Waiting(call, seconds, alone)
        self._waiting.append(mine)
        try:
            async with asyncio.timeout(seconds):
                found: Result | None = await mine.answer
        except TimeoutError:
            raise errors.Unreachable("no answer came within the time of this try", code="unreachable") from None
        finally:
            if mine in self._waiting:
                self._waiting.remove(mine)
        return await alone(max(mine.give_up_at - time.monotonic(), 0.001)) if found is None else found

    def _hand_on(self) -> None:
        if not self._waiting:
            self._under_way = False
            return
        # Referenced here, because the event loop does not keep tasks alive.
        self._sending = asyncio.get_running_loop().create_task(self._send(taken(self._waiting)))

    async def _send(self, together: list[Waiting]) -> None:
        try:
            _settle(together, await self._answers(together))
        finally:
            # Calls without an answer, because this task was cancelled, are sent alone.
            _settle(together, [None] * len(together))
            for _ in range(TURNS):
                await asyncio.sleep(0)
            self._hand_on()

    async def _answers(self, together: list[Waiting]) -> Sequence[Any]:
        first = together[0]
        seconds = max(first.give_up_at - time.monotonic(), 0.001)
        try:
            if len(together) == 1:
                return [await first.alone(seconds)]
            return await self._together([each.call for each in together], seconds)
        except errors.BrokerError as error:
            if len(together) == 1:
                return [error]
            return [error.anew() if isinstance(error, PASSING) else None for _ in together]


def _settle(together: Sequence[Waiting], answers: Sequence[Any]) -> None:
    for each, answer in zip(together, answers, strict=True):
        if each.answer.done():
            continue
        if isinstance(answer, errors.BrokerError):
            each.answer.set_exception(answer)
        else:
            each.answer.set_result(answer)
