"""Coalescing among threads: calls that arrive while a request is running are sent together in the next request."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from mqbroker_client.core import errors, forks
from mqbroker_client.core.calls import Call, Result
from mqbroker_client.core.parts import Part, taken
from mqbroker_client.core.retries import PASSING

#: How long a request waits for the first call, and for all calls, of the threads that were just answered. If the
#: previous wait brought a call, it does not wait for the first call separately.
FIRST_COMES_SECONDS = 0.0003
ALL_COME_SECONDS = 0.003
INTERRUPTED = "the thread that sent this call with its own was interrupted"

#: A function that sends a single call, and returns its result within the given number of seconds.
Alone = Callable[[float], Any]
#: A function that sends several calls in one request, and returns the result or the error of each.
Together = Callable[[Sequence[Call[Any]], float], Sequence[Any]]


class Waiting(Part):
    """A thread's call; the thread sleeps until `awake` is released."""

    __slots__ = ("after", "alone", "answer", "awake", "failed", "has_handed_on", "has_left", "together")

    def __init__(self, call: Call[Any], alone: Alone) -> None:
        super().__init__(call)
        self.alone = alone
        #: The call's own result or error, or the error of the whole request.
        self.answer: Any = None
        self.failed: errors.BrokerError | None = None
        #: The calls that this thread must send in one request, its own among them; empty if another thread sends.
        self.together: list[Waiting] = []
        #: The next thread whose answer has come: this thread wakes it as soon as it is awake itself.
        self.after: Waiting | None = None
        #: Whether this thread has stopped waiting: then it wakes no other thread, so another thread must do this.
        self.has_left = False
        #: Whether another thread has already sent the calls that came after this thread's request.
        self.has_handed_on = False
        self.awake = Lock()
        self.awake.acquire()

    def wake_next(self) -> None:
        """Wakes the next thread whose answer has come."""
        after, self.after = self.after, None
        if after is not None:
            after.awake.release()


class Lane:
    """Combines the calls of the threads of one process.

    1. A thread sends its call at once if no request is running.
    2. Threads that come during a request wait.
    3. The thread of the finished request makes a waiting thread the sender of all waiting calls, up to the limits of a
       bulk.
    4. The sender sends them in one request, and wakes the first of the other threads; each woken thread wakes the next.
       If all were woken at once, they would compete for the interpreter: 6 switches per call instead of 2.
    5. The sender waits briefly for the next calls of the woken threads. The thread that brings the last of these calls
       becomes the sender.

    A thread stops waiting when its time is over. Its call may still be done, and is safe to repeat.
    """

    def __init__(self, together: Together) -> None:
        self._together = together
        self.leave_to_parent()
        forks.remember(self)

    def leave_to_parent(self) -> None:
        """Drops waiting threads in a forked child, because they exist only in the parent."""
        self._lock = Lock()
        self._under_way = False
        self._waiting: deque[Waiting] = deque()
        #: The sender that waits until `_expected` calls have come; None if no sender waits for further calls.
        self._letting_come: Waiting | None = None
        self._expected = 0
        #: Whether further calls arrived while a sender last waited for them. If no call came, the next sender does not
        #: wait.
        self._have_come = False

    def waiting(self) -> int:
        """The number of calls that wait for the running request."""
        return len(self._waiting)

    def ask(self, call: Call[Result], seconds: float, alone: Callable[[float], Result]) -> Result:
        """The result of one call, sent alone or with others. Raises a `BrokerError` with the reason for a failure."""
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
        """Called after this thread's request, answered or not: makes a waiting thread the next sender."""
        with self._lock:
            if mine is not None and mine.has_handed_on:
                return
            self._letting_come = None
            if self._waiting:
                self._send_off()
            else:
                self._under_way = False

    def _send_off(self) -> None:
        """Takes the waiting calls that fit into one request, and makes the thread of the last of them the sender. The
        sender may be the current thread.
        """
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
        """Sets each thread's answer, and wakes the first thread that still waits for its answer."""
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
        """Waits briefly for the next calls of the threads that were just woken; the last of them then sends.

        With 32 callers that make one transaction after another, a request then has 31 calls; without this wait, 16 to
        22. The wait costs 2 ms while other calls come, 3 ms once when they stop, and 0.3 ms while none comes. The
        thread sleeps, because each look at the other threads would delay them by 20 µs. A thread that is alone never
        waits here.
        """
        waiting = len(self._waiting)
        all_came = mine.awake.acquire(timeout=ALL_COME_SECONDS if self._have_come else FIRST_COMES_SECONDS)
        have_come = all_came or len(self._waiting) > waiting
        if have_come and not all_came and not self._have_come:
            mine.awake.acquire(timeout=ALL_COME_SECONDS)
        self._have_come = have_come

    def _leave(self, mine: Waiting) -> None:
        """Stops waiting. If this thread had to send, or to wake another thread, the next thread does this instead."""
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
            # If the shared request cannot be used, each call is sent again alone.
            return mine.alone(max(give_up_at - time.monotonic(), 0.001))
        answer = mine.failed.anew() if mine.failed is not None else mine.answer
        if answer is None:
            raise errors.Unreachable("no answer came within the time of this try", code="unreachable")
        if isinstance(answer, errors.BrokerError):
            raise answer
        return answer
