"""Coalescing among threads: calls that come while another one is under way go together, in one request."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from mqbroker_client import errors, forks
from mqbroker_client.calls import Call, Result
from mqbroker_client.parts import Part, taken
from mqbroker_client.retries import PASSING

#: How long the first call waits for those of other threads that were just answered; the shorter time where the wait
#: before brought none.
FIRST_COMES_SECONDS = 0.0003
ALL_COME_SECONDS = 0.003
INTERRUPTED = "the thread that sent this call with its own was interrupted"

#: The result of a call by itself, within so many seconds.
Alone = Callable[[float], Any]
#: The result of each of several calls, or its error.
Together = Callable[[Sequence[Call[Any]], float], Sequence[Any]]


class Waiting(Part):
    """The call of a thread, which sleeps until `awake` is released."""

    __slots__ = ("after", "alone", "answer", "awake", "failed", "has_left", "together")

    def __init__(self, call: Call[Any], alone: Alone) -> None:
        super().__init__(call)
        self.alone = alone
        #: The call's own result or error, or the error of the whole request.
        self.answer: Any = None
        self.failed: errors.BrokerError | None = None
        #: The calls that this one's thread has to send, its own among them; empty where another thread sends it.
        self.together: list[Waiting] = []
        #: The next thread with an answer, which this one wakes as soon as it is awake.
        self.after: Waiting | None = None
        #: Whether its thread waits no longer, and would wake no other.
        self.has_left = False
        self.awake = Lock()
        self.awake.acquire()

    def wake_next(self) -> None:
        """Wake the next thread with an answer."""
        after, self.after = self.after, None
        if after is not None:
            after.awake.release()


class Lane:
    """The calls of the threads of one process.

    1. The thread that finds nothing under way, and no other thread expected, sends its call at once, itself.
    2. Threads that come meanwhile wait. The thread whose call makes a request large enough sends it for all of them;
       a second one while another shared request is under way, so that the broker has work while answers are read here.
    3. It reads all answers, wakes the first of the others, and goes on with its own; each wakes the next one. If all
       were woken at once, they would contend for the interpreter: 6 switches to a call in place of 2.
    4. Those that were just answered are expected with their next calls, for a short time: the first that comes then
       watches it.

    A thread leaves when its time is over: its call may be answered all the same, and is safe to repeat.
    """

    def __init__(self, together: Together) -> None:
        self._together = together
        self.leave_to_parent()
        forks.remember(self)

    def leave_to_parent(self) -> None:
        """In a forked child: the threads that were under way are not here."""
        self._lock = Lock()
        #: The calls of each request that is under way: two at most.
        self._under_way: list[list[Waiting]] = []
        self._waiting: deque[Waiting] = deque()
        #: How many threads that were just answered are expected with their next calls, and until when.
        self._expected = 0
        self._expected_until = 0.0
        #: Whether threads lately shared a request: so they do not where one is answered before another call has come.
        self._shares = False
        #: How long the first of these that comes waits for the others.
        self._patience_seconds = FIRST_COMES_SECONDS

    def waiting(self) -> int:
        """Calls that wait for the one that is under way."""
        return len(self._waiting)

    def ask(self, call: Call[Result], seconds: float, alone: Callable[[float], Result]) -> Result:
        """The result of one call, sent alone or with others. Raises the `BrokerError` that says why there is none."""
        now = time.monotonic()
        give_up_at = now + seconds
        mine = Waiting(call, alone)
        watches = self._join(mine, now)
        is_over = False
        try:
            is_over = bool(mine.together) or self._wait(mine, seconds, watches=watches)
            mine.wake_next()
            if mine.together:
                left = give_up_at - time.monotonic()
                is_over = left > 0
                if is_over:
                    self._send(mine, left)
        finally:
            if not is_over:
                self._leave(mine)
        result: Result = self._answer(mine, give_up_at)
        return result

    def _join(self, mine: Waiting, now: float) -> bool:
        """Whether its thread is to watch that those that are expected come."""
        with self._lock:
            if self._expected:
                self._expected = self._expected - 1 if now < self._expected_until else 0
            self._waiting.append(mine)
            if self._is_time():
                self._send_off(mine)
                return False
            return not self._under_way and len(self._waiting) == 1

    def _wait(self, mine: Waiting, seconds: float, *, watches: bool) -> bool:
        """Until it has its answer or is to send; whether that was in time."""
        if watches and not mine.awake.acquire(timeout=min(self._patience_seconds, seconds)):
            with self._lock:
                if not self._under_way and self._waiting[0] is mine:
                    # Not all come. Where none did, the next one waits less for them.
                    self._patience_seconds = ALL_COME_SECONDS if len(self._waiting) > 1 else FIRST_COMES_SECONDS
                    self._expected = 0
                    self._send_off(mine)
                    return True
        elif watches:
            return True
        return mine.awake.acquire(timeout=seconds)

    def _is_time(self) -> bool:
        """Whether those that wait are sent now: once they are half of all that are known or expected."""
        count = len(self._waiting)
        if not self._under_way:
            return count >= self._expected
        sent = len(self._under_way[0])
        return len(self._under_way) == 1 and (sent > 1 or self._shares) and count >= sent + self._expected

    def _send_off(self, mine: Waiting | None = None) -> None:
        """Make one of those whose calls fit into one request their sender: the running thread, if it is among them."""
        busy = {each.transaction_id for under_way in self._under_way for each in under_way}
        together = taken(self._waiting, busy)
        if not together:
            return
        self._under_way.append(together)
        if len(together) > 1:
            self._patience_seconds = ALL_COME_SECONDS
        if mine is not None and mine in together:
            mine.together = together
        else:
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
            self._end(mine, together, answers, failed)

    def _answers(self, together: list[Waiting], seconds: float) -> Sequence[Any]:
        if len(together) == 1:
            try:
                return [together[0].alone(seconds)]
            except errors.BrokerError as error:
                return [error]
        return self._together([each.call for each in together], seconds)

    def _end(
        self,
        mine: Waiting,
        together: list[Waiting],
        answers: Sequence[Any],
        failed: errors.BrokerError | None,
    ) -> None:
        """Give each thread its answer, and wake the first of those that still wait for theirs."""
        last = mine
        with self._lock:
            self._under_way.remove(together)
            if len(together) > 1:
                self._expect(len(together))
            self._shares = len(together) > 1 or (self._shares and bool(self._waiting))
            for each, answer in zip(together, answers, strict=True):
                each.answer, each.failed = answer, failed
                if each is not mine and not each.has_left:
                    last.after = each
                    last = each
            if self._waiting and (not self._under_way or self._is_time()):
                self._send_off()
        mine.wake_next()

    def _expect(self, count: int) -> None:
        now = time.monotonic()
        self._expected = count + (self._expected if now < self._expected_until else 0)
        self._expected_until = now + ALL_COME_SECONDS

    def _leave(self, mine: Waiting) -> None:
        """Wait no longer. A thread that was to send, to watch, or to wake another one leaves that to the next one."""
        with self._lock:
            mine.has_left = True
            if mine in self._waiting:
                self._waiting.remove(mine)
            if mine.together:
                self._under_way.remove(mine.together)
                self._waiting.extendleft(each for each in reversed(mine.together) if each is not mine)
                mine.together = []
            if self._waiting and not self._under_way:
                self._send_off()
        mine.wake_next()

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
