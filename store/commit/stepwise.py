"""The stepwise writer: a batch is one transaction of several round trips, for operations that depend on rows they read.

It writes operations that are never pipelined, and operations that a pipelined batch left out: repeats, refusals, the
first entry of a queue in a segment, rows that another session has locked. A lone operation is written at once.
"""

import asyncio
from collections.abc import Sequence

import psycopg
from psycopg import errors as pg

from store.commit import locked, moved, stalled
from store.commit.attempts import DONE_OVER, MAX_ATTEMPTS, MAX_ATTEMPTS_ALONE, answer
from store.commit.batch import Batch
from store.commit.operation import Note, Operation, Result, by_class, write_steps
from store.commit.pending import Pending, PendingQueue, resolve
from store.commit.silence import Silence
from store.db import connections, patience, routing
from store.db.connections import Connection
from store.db.patience import Unanswered
from store.errors import KeyTooLong, OutcomeUnknown, SystemBusy
from store.notices import notifier
from store.segments import log

# When an end meets a transaction that another session has locked, the end is tried again after this time; other
# operations do not wait for it.
PUT_OFF_SECONDS = 0.5
# After this time, a connected database that does not answer counts as away. The server's statement time-out is shorter.
WRITE_SECONDS = 20.0
COMMIT_LOST = (
    "The database connection broke during the commit: whether the message was stored is unknown. Repeating "
    "the request with the same ids is safe."
)


class StepwiseWriter:
    """A bounded queue of operations, and the connection over which they are written in stepwise batches."""

    def __init__(self) -> None:
        self._waiting = PendingQueue()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._closing = False
        self._put_off: set[Pending] = set()
        self._silence = Silence()
        self._looks: set[asyncio.Task[None]] = set()

    async def write(self, operation: Operation[Result], note: Note | None = None) -> Result:
        """Writes an operation, and the audit row of `note` with the operation or its refusal. Returns the result.

        Raises the refusal; SystemBusy: nothing was stored; OutcomeUnknown: the connection broke during the commit.
        """
        pending = self._waiting.add(operation, note)
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_forever(), name="stepwise writer")
        result: Result = await pending.future
        patience.current().has_committed |= not operation.IS_READ
        return result

    async def close(self) -> None:
        """Writes the waiting operations, then closes the connection."""
        self._closing = True
        for pending in list(self._put_off):
            self._come_again(pending)
        self._wake.set()
        if self._task is not None:
            await self._task
        await asyncio.gather(*self._looks, return_exceptions=True)
        await self._disconnect()

    async def _write_forever(self) -> None:
        while not self._closing or self._waiting:
            await self._wake.wait()
            self._wake.clear()
            while batch := self._waiting.take():
                with patience.of(patience.REQUEST_SECONDS):
                    await self._write(batch)
        self._closing = False

    async def _write(self, pending: list[Pending]) -> None:
        """Writes a batch. If an operation makes it fail, writes it in halves until that operation is alone."""
        problem: Exception | None = None
        for attempt in range(MAX_ATTEMPTS if len(pending) > 1 else MAX_ATTEMPTS_ALONE):
            try:
                async with locked.looking(pending, self._connection, self._looks):
                    await self._attempt(pending, again=attempt > 0)
                resolve(pending)
                return
            except pg.LockNotAvailable as met:
                problem = met
                stalled.watch()
                if not (pending := locked.refuse_late(pending)):
                    return
                # One operation may cause this: the batch is split, so that the others do not wait for it.
                if len(pending) > 1 or self._is_put_off(pending[0]):
                    break
            except (moved.Departed, moved.Outdated) as met:
                problem = met
                if not (pending := met.refuse(pending)):
                    return
            except DONE_OVER as conflict:
                problem = conflict
            except (SystemBusy, OutcomeUnknown) as refusal:
                resolve(pending, refusal)
                return
            except Exception as spoiled:  # noqa: BLE001  # this is the answer to the operation that causes it
                problem = spoiled
                break
        assert problem is not None
        await self._isolate(pending, problem)

    def _is_put_off(self, pending: Pending) -> bool:
        """Postpones an end that met a lock, so that other operations do not wait. False for other operations."""
        if not pending.operation.URGENT or self._closing:
            return False
        self._put_off.add(pending)
        asyncio.get_running_loop().call_later(PUT_OFF_SECONDS, self._come_again, pending)
        return True

    def _come_again(self, pending: Pending) -> None:
        if pending in self._put_off:
            self._put_off.discard(pending)
            self._waiting.add_again(pending)
            self._wake.set()

    async def _isolate(self, pending: list[Pending], problem: Exception) -> None:
        if self._put_off.issuperset(pending):
            return
        if len(pending) > 1:
            middle = len(pending) // 2
            for part in (pending[:middle], pending[middle:]):
                # The time of operations in the second half may have ended while the first half was written.
                if left := locked.refuse_late(part) if isinstance(problem, pg.LockNotAvailable) else part:
                    await self._write(left)
        else:
            resolve(pending, answer(pending[0], problem))

    async def _attempt(self, pending: list[Pending], *, again: bool) -> None:
        """Writes a batch in one transaction.

        Raises SystemBusy (nothing was stored), OutcomeUnknown (the commit was lost), Departed, or the error of a step.
        """
        if patience.current().is_over:
            # If the server does not answer, another attempt would wait just as long for its connection.
            raise connections.away(Unanswered(patience.REQUEST_SECONDS))
        for one in pending:
            one.operation.result = one.operation.refusal = one.operation.before = None
        with self._silence.heeded():
            batch = await self._before_commit(pending, again=again)
            await self._commit(batch.connection)
        notifier.visible(batch.entries)
        for call in batch.afterwards:
            call()

    async def _before_commit(self, pending: list[Pending], *, again: bool) -> Batch:
        work = by_class([one.operation for one in pending])
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                connection = await self._connected(pending)
                locks = {key for class_, operations in work for key in class_.locks(operations)}
                segment = await log.join(connection, locks, silence_ms=self._silence.limit_ms)
                batch = Batch(connection, *segment, again=again)
                await write_steps(batch, work)
                for one in pending:
                    if one.note is not None:
                        one.note(batch, one.operation)
                await batch.write_rows()
                return batch
        except DONE_OVER:
            await self._abandon()
            raise
        except pg.CheckViolation as problem:
            await self._abandon()
            raise await moved.problem_of(problem, self._connection) from problem
        except pg.ProgramLimitExceeded as problem:
            await self._abandon()
            raise KeyTooLong from problem
        except (psycopg.OperationalError, pg.TransactionTimeout, pg.ReadOnlySqlTransaction, TimeoutError) as problem:
            # The server is away, too slow, or no longer the primary, so the next attempt opens a new connection. After
            # a lost session there is one more attempt.
            is_ended = not again and stalled.is_ended(problem, self._connection)
            await self._disconnect()
            if is_ended:
                raise stalled.Ended from problem
            refusal = connections.away(problem)
            if isinstance(problem, (Unanswered, pg.ConnectionTimeout)):
                patience.current().unanswered(patience.REQUEST_SECONDS)
                self._refuse_waiting(refusal)
            raise refusal from problem
        except BaseException:
            await self._abandon()
            raise

    async def _commit(self, connection: Connection) -> None:
        try:
            stalled.require_silent(connection)
            async with asyncio.timeout(WRITE_SECONDS):
                await connection.commit()
        except (stalled.Ended, pg.IdleInTransactionSessionTimeout):
            await self._disconnect()
            raise
        except (psycopg.OperationalError, pg.TransactionTimeout, TimeoutError) as problem:
            await self._disconnect()
            if isinstance(problem, Unanswered):
                self._refuse_waiting(connections.away(problem))
            raise OutcomeUnknown(COMMIT_LOST) from problem

    def _refuse_waiting(self, refusal: SystemBusy) -> None:
        """Refuses all waiting operations when the server does not answer: a new connection would not help them."""
        while waiting := self._waiting.take():
            resolve(waiting, refusal)

    async def _abandon(self) -> None:
        """Rolls back the transaction; closes a connection that cannot roll back."""
        try:
            if self._connection is not None:
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._connection.rollback()
        except (psycopg.Error, TimeoutError) as problem:
            await self._disconnect()
            if isinstance(problem, Unanswered):
                self._refuse_waiting(connections.away(problem))

    async def _connected(self, pending: Sequence[Pending]) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await routing.connect("mqbroker-writer")
            await self._connection.bound_transactions(int(WRITE_SECONDS))
        return moved.open_to(pending, self._connection)

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
