"""Coalescing among threads: calls that come while another one is under way go together, in one request."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from mqbroker_client.core import errors, forks
from mqbroker_client.core.calls import Call, Result
from mqbroker_client.core.parts import Part, taken
from mqbroker_client.core.retries import PASSING

#: How long a request waits for the first and for all next calls of the threads that were just answered. Where the wait
#: before brought one, it waits for all of them at once.
FIRST_COMES_SECONDS = 0.0003
ALL_COME_SECONDS = 0.003
INTERRUPTED = "the thread that sent this call with its own was interrupted"

#: The result of a call by itself, within so many seconds.
Alone = Callable[[float], Any]
#: The result of each of several calls, or its error.
Together = Callable[[Sequence[Call[Any]], float], Sequence[Any]]


class Waiting(Part):
    """The call of a thread, which sleeps until `awake` is released."""

    __slots__ = ("after", "alone", "answer", "awake", "failed", "has_handed_on", "has_left", "together")

    def __init__(self, call: Call[Any], alone: Alone) -> None:
        super().__init__(call)
        self.alone = alone
        #: The call's own result or error, or the error of the whole request.
        self.answer: Any = None
        self.failed: errors.BrokerError | None = None
        #: The calls that this one's thread has to send, its own among them; empty until it is the first of them.
        self.together: list[Waiting] = []
        #: The next thread with an answer, which this one wakes as soon as it is awake.
        self.after: Waiting | None = None
        #: Whether its thread waits no longer, and would wake no other.
        self.has_left = False
        #: Whether another thread has sent what came after the request of this one.
        self.has_handed_on = False
        self.awake = Lock()
        self.awake.acquire()

    def wake_next(self) -> None:
        """Wake the next thread with an answer."""
        after, self.after = self.after, None
        if after is not None:
            after.awake.release()


class Lane:
    """The calls of the threads of one process.

    1. The thread that finds nothing under way sends its call at once, itself.
    2. Threads that come meanwhile wait.
    3. The thread that sent makes one of them the sender of all that wait, within the limits of a bulk.
    4. That one sends them in one request, and wakes the first of the others; each wakes the next one. If all were woken
       at once, they would contend for the interpreter: 6 switches to a call in place of 2.
    5. It waits a little for the next calls of those that were woken. The thread that brings the last of them sends.

    A thread leaves when its time is over: its call may be answered all the same, and is safe to repeat.
    """

    def __init__(self, together: Together) -> None:
        self._together = together
        self.leave_to_parent()
        forks.remember(self)

    def leave_to_parent(self) -> None:
        """In a forked child: the threads that were under way are not here."""
        self._lock = Lock()
        self._under_way = False
        self._waiting: deque[Waiting] = deque()
        #: The thread that waits until so many calls wait.
        self._letting_come: Waiting | None = None
        self._expected = 0
        #: Whether the last wait for the next calls brought one.
        self._have_come = False

    def waiting(self) -> int:
        """Calls that wait for the one that is under way."""
        return len(self._waiting)

    def ask(self, call: Call[Result], seconds: float, alone: Callable[[float], Result]) -> Result:
        """The result of one call, sent alone or with others. Raises the `BrokerError` that says why there is none."""
        give_up_at = time.monotonic() + seconds
        mine = self._join(call, alone)
        if mine is None:
            try:
                return alone(seconds)
            finally:
                self._hand_on()
        is_woken = False
        try:
            is_woken = mine.awake.acquire(timeout=seconds)
            mine.wake_next()
            if mine.together and time.monotonic() < give_up_at:
                self._send(mine, give_up_at - time.monotonic())
        finally:
            if not is_woken or mine.answer is None or mine.after is not None:
                self._leave(mine)
        result: Result = self._answer(mine, give_up_at)
        return result

    def _join(self, call: Call[Any], alone: Alone) -> Waiting | None:
        with self._lock:
            if not self._under_way:
                self._under_way = True
                return None
            mine = Waiting(call, alone)
            self._waiting.append(mine)
            if self._letting_come is not None and len(self._waiting) >= self._expected:
                self._letting_come.has_handed_on = True
                self._letting_come.awake.release()
                self._letting_come = None
                self._send_off()
            return mine

    def _hand_on(self, mine: Waiting | None = None) -> None:
        """The request that was under way, of the call of this thread, has its answers, or none."""
        with self._lock:
            if mine is not None and mine.has_handed_on:
                return
            self._letting_come = None
            if self._waiting:
                self._send_off()
            else:
                self._under_way = False

    def _send_off(self) -> None:
        """Make the last of those whose calls fit into one request their sender: it may be the running thread."""
        together = taken(self._waiting)
        together[-1].together = together
        together[-1].awake.release()

    def _send(self, mine: Waiting, seconds: float) -> None:
        together, mine.together = mine.together, []
        failed: errors.BrokerError | None = None
        answers: Sequence[Any] = ()
        try:
            answers = self._answers(together, seconds)
        except errors.BrokerError as error:
            failed = error
        finally:
            if not answers:
                answers = [None] * len(together)
                failed = failed or errors.Unreachable(INTERRUPTED, code="unreachable")
            try:
                self._answer_all(mine, together, answers, failed)
                if len(together) > 1:
                    self._let_come(mine)
            finally:
                self._hand_on(mine)

    def _answer_all(
        self,
        mine: Waiting,
        together: list[Waiting],
        answers: Sequence[Any],
        failed: errors.BrokerError | None,
    ) -> None:
        """Give each thread its answer, and wake the first of those that still wait for theirs."""
        last = mine
        with self._lock:
            if len(together) > 1:
                self._letting_come, self._expected = mine, len(self._waiting) + len(together) - 1
            for each, answer in zip(together, answers, strict=True):
                each.answer, each.failed = answer, failed
                if each is not mine and not each.has_left:
                    last.after = each
                    last = each
        mine.wake_next()

    def _answers(self, together: list[Waiting], seconds: float) -> Sequence[Any]:
        if len(together) == 1:
            try:
                return [together[0].alone(seconds)]
            except errors.BrokerError as error:
                return [error]
        return self._together([each.call for each in together], seconds)

    def _let_come(self, mine: Waiting) -> None:
        """Let the threads that were just woken bring their next calls; the last of them hands on.

        32 callers, each with one transaction after the other: 31 calls to a request, 16 to 22 without this. It costs
        the waiting ones some 2 ms where the others come, 3 ms once where they come no more, and 0.3 ms as long as none
        does. The thread sleeps: each of its looks at the others would cost them 20 µs. A thread without others never
        comes here.
        """
        waiting = len(self._waiting)
        all_came = mine.awake.acquire(timeout=ALL_COME_SECONDS if self._have_come else FIRST_COMES_SECONDS)
        have_come = all_came or len(self._waiting) > waiting
        if have_come and not all_came and not self._have_come:
            mine.awake.acquire(timeout=ALL_COME_SECONDS)
        self._have_come = have_come

    def _leave(self, mine: Waiting) -> None:
        """Wait no longer. A thread that was to send, or to wake another one, leaves that to the next one."""
        with self._lock:
            mine.has_left = True
            if mine in self._waiting:
                self._waiting.remove(mine)
            others, mine.together = mine.together, []
            self._waiting.extendleft(each for each in reversed(others) if each is not mine)
        mine.wake_next()
        if others:
            self._hand_on()

    def _answer(self, mine: Waiting, give_up_at: float) -> Any:
        if mine.failed is not None and not isinstance(mine.failed, PASSING):
            # Whatever is wrong with the request that they shared, each call has an answer of its own.
            return mine.alone(max(give_up_at - time.monotonic(), 0.001))
        answer = mine.failed.anew() if mine.failed is not None else mine.answer
        if answer is None:
            raise errors.Unreachable("no answer came within the time of this try", code="unreachable")
        if isinstance(answer, errors.BrokerError):
            raise answer
        return answer
