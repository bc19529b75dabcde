"""The pipelined writer: it sends waiting operations as one transaction, and answers each caller after the commit.

1. `hand_in` puts an operation into the queue of its lane; ends stand before the others.
2. While fewer than DEPTH batches are under way, the next batch is packed and sent as soon as the queue holds half of
   the recent concurrency (requests waiting and in flight), at least WORTH and at most MOST_WAITED operations. With no
   batch under way a lone operation is sent at once, and fewer operations are sent when a turn of the event loop has
   added none.
3. After the commit the next batch is sent first. Then each operation that was written gets its result. An operation
   that was left out has no result: `finish` gives it to the stepwise writer, which finds the reason.
4. A batch that was rolled back is sent again if another process interfered or its session was ended. If the batch
   waited for a lock in vain, it is sent again without the queues that other sessions have locked. After any other
   failure its operations are left out.
5. When the connection breaks, a batch whose commit was not sent is refused with SystemBusy, any other batch under way
   with OutcomeUnknown.
"""

import asyncio
from collections import deque
from typing import Any

import psycopg
import structlog

from store.commit import stalled
from store.commit.operation import Pipelined, Settled, answer
from store.commit.overdue import Overdue
from store.commit.pipelined import PipelinedBatch, joined
from store.commit.stepwise import COMMIT_LOST, WRITE_SECONDS
from store.commit.waiting import Waiting
from store.db import connections, patience
from store.db.outcomes import Failed, NotSent
from store.db.patience import REQUEST_SECONDS, Unanswered
from store.db.pipeline import Pipeline, Results, found, open_pipeline
from store.errors import OutcomeUnknown, SystemBusy
from store.notices.notifier import Wakeups
from store.process import runtime

logger = structlog.stdlib.get_logger(__name__)

DEPTH = 2  # while PostgreSQL executes one batch, the next one is packed and sent
MAX_ATTEMPTS = 3


class PipelinedWriter:
    """A bounded queue of operations, and the connection over which they are written in pipelined batches."""

    def __init__(self, home: runtime.Runtime) -> None:
        self._home = home
        self.waiting = Waiting(home.name)
        self._again: deque[PipelinedBatch] = deque()
        self._under_way: deque[PipelinedBatch] = deque()
        self._segment_id = 0
        self._pipeline: Pipeline | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._overdue = Overdue(self._under_way, REQUEST_SECONDS, self._give_up)
        self._scheduled = self._resting = False
        self._is_quiet = False  # whether the last turn of the event loop has added no operation

    def hand_in(self, operation: Pipelined[Any], settled: Settled | None = None, *, at_once: bool = False) -> None:
        """Has an operation written. After the commit its future is done, or `settled` is called instead.

        Then it has a result, or no result if it was left out, or the error SystemBusy (nothing was stored) or
        OutcomeUnknown. With `at_once` it may be sent before this turn ends. Raises SystemBusy, without `settled`, if
        too much waits.
        """
        self.waiting.add(operation)
        operation.settled = settled
        self._is_quiet = False
        if self._is_worth() if at_once else self.waiting.is_large:
            self._pump()
        elif not self._scheduled:
            self._schedule()

    async def close(self) -> None:
        """Writes the waiting operations and closes the connection."""
        while unanswered := [one.future for one in self.unanswered() if not one.is_done]:
            self._schedule()
            await asyncio.wait(unanswered)
        if self._connecting is not None:
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._pipeline is not None:
            self._pipeline.close()

    def unanswered(self) -> list[Pipelined[Any]]:
        """The operations that wait for a batch, or are in a batch that is under way."""
        return [*self.waiting, *(one for batch in (*self._again, *self._under_way) for one in batch.operations)]

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        self._pump()
        if self.waiting and not self._under_way and not self._is_quiet:
            # The next turn of the event loop sends the operations, unless another operation is added first.
            self._is_quiet = True
            self._schedule()

    def _pump(self) -> None:
        # While a batch with sharding keys is under way no other batch is sent: a repeat of the first would come after
        # the other.
        while not (self._resting or any(one.ordered for one in self._under_way)) and (self._again or self._is_worth()):
            if self._pipeline is None or not self._pipeline.is_open:
                if self._connecting is None or self._connecting.done():
                    self._connecting = self._home.task(self._reconnect(), "connect the writer")
                return
            wakeups = self._home.part(Wakeups)
            batch = self._again.popleft().in_turn() if self._again else joined(self.waiting.take(), wakeups, self)
            batch = batch.under(self._pipeline.map_version)
            if batch.operations:
                self._send(self._pipeline, batch)

    def _is_worth(self) -> bool:
        if len(self._under_way) >= DEPTH or not self.waiting.count:
            return False
        return self.waiting.is_enough or (not self._under_way and (self._is_quiet or self.waiting.are_all))

    def _send(self, pipeline: Pipeline, batch: PipelinedBatch) -> None:
        try:
            calls = batch.calls(self._segment_id)
        except Exception:
            # The stepwise writer refuses only the operation that cannot be packed.
            logger.exception("a batch could not be packed")
            answer(batch.operations)
            return self._rest()
        self._overdue.sent(batch)
        self.waiting.note(sum(batch.requests for batch in self._under_way))
        transactions = [one for one in (calls, batch.behind_commit()) if one]
        outcomes: list[Results | Exception] = []

        def gather(outcome: Results | Exception) -> None:
            outcomes.append(outcome)
            if len(outcomes) == len(transactions):
                self._finish(batch, pipeline, outcomes)

        try:
            for transaction in transactions:
                pipeline.send(transaction, gather)
        except Exception as problem:
            # The server rolls back a transaction if it does not get the transaction's sync.
            logger.exception("a batch could not be sent")
            pipeline.close()
            if batch in self._under_way:
                self._finish(batch, pipeline, outcomes or [NotSent(type(problem).__name__)])

    def _finish(self, batch: PipelinedBatch, pipeline: Pipeline, outcomes: list[Results | Exception]) -> None:
        written, *read = outcomes
        self._under_way.remove(batch)
        self.waiting.heard(written, is_asked=bool(self._under_way))
        if not isinstance(written, Exception) and not batch.ordered:
            # PostgreSQL can execute the next batch while this process answers the callers of this one.
            self._pump()
        self._resting = True
        try:
            # This call may run in the context of a request of another cell.
            with self._home.entered():
                if isinstance(written, Exception):
                    self._refuse(batch, pipeline, written)
                else:
                    self._settle(batch, {**written, **found(read[0])} if read else written)
        except Exception as problem:
            # The batch is committed, but its answers could not be read: its callers get an error.
            logger.exception("a batch could not be answered")
            answer(batch.operations, problem)
        finally:
            self._resting = bool(self.waiting.count or self._again or batch.left_out())
            if self._resting:
                self._rest()

    def _refuse(self, batch: PipelinedBatch, pipeline: Pipeline, problem: Exception) -> None:
        if isinstance(problem, Failed):
            self._failed(batch, pipeline, problem)
            return
        not_sent = connections.away(psycopg.OperationalError(str(problem)), self._home)
        answer(batch.operations, not_sent if isinstance(problem, NotSent) else OutcomeUnknown(COMMIT_LOST))

    def _give_up(self) -> None:
        """Gives up a server that does not answer: sent batches are Lost, and waiting operations are refused."""
        problem, pipeline = Unanswered(REQUEST_SECONDS), self._pipeline
        if pipeline is not None:
            pipeline.close(problem)
        self._refuse_waiting(connections.away(problem, self._home))

    def _refuse_waiting(self, refusal: SystemBusy) -> None:
        self.waiting.given_up()
        while self._again:
            answer(self._again.popleft().operations, refusal)
        while self.waiting:
            answer(self.waiting.take(), refusal)

    def _settle(self, batch: PipelinedBatch, results: Results) -> None:
        with self._home.part(Wakeups).answers_of(self):
            open_segment = batch.settle(results)
        left = batch.left_out()
        if left and open_segment is not None and open_segment != batch.segment_id and batch.attempts < MAX_ATTEMPTS:
            # This process did not know the segment that is open now, so every statement has left all rows out.
            self._segment_id = open_segment
            self._again.append(PipelinedBatch(left, batch.attempts + 1, only_free=batch.only_free))
            answer([one for one in batch.operations if one.result is not None])
        else:
            answer(batch.operations)

    def _rest(self) -> None:
        """Sends no batch until callers of left-out operations have continued: later messages must follow theirs."""
        self._resting = True
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._resting = False
        self._turn()

    def _failed(self, batch: PipelinedBatch, pipeline: Pipeline, problem: Failed) -> None:
        """Sends a rolled-back batch again, or answers its operations; nothing was stored."""
        again = batch.attempts + 1
        if problem.is_locked:
            stalled.watch()
        if (problem.is_locked or problem.is_passing) and again < MAX_ATTEMPTS:
            # The lock is either of a queue, which the next attempt skips, or of the whole log, which a session holds
            # only for a moment.
            self._again.append(PipelinedBatch(batch.operations, again, only_free=problem.is_locked or batch.only_free))
        elif problem.is_away:
            if problem.is_session_gone:
                pipeline.close()
            answer(batch.operations, connections.away(problem.of_psycopg(), self._home))
        elif len(batch) > 1 and problem.may_be_of_one:
            middle = len(batch) // 2
            for part in (batch.operations[:middle], batch.operations[middle:]):
                self._again.append(PipelinedBatch(part, MAX_ATTEMPTS - 1, only_free=True))
        else:
            logger.info("a batch is written stepwise", reason=str(problem), code=problem.code, operations=len(batch))
            answer(batch.operations)

    async def _reconnect(self) -> None:
        # One limit for all these waits together. It also applies if a server accepts connections but sends no answer.
        patience.begin(REQUEST_SECONDS, in_all=True)
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                self._pipeline = await open_pipeline("mqbroker-writer")
        except Exception as problem:  # noqa: BLE001  # waiting operations are answered whatever the problem is
            self._refuse_waiting(connections.away(problem, self._home))
        self._schedule()
