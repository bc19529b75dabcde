"""Decides local transactions by their rows in the producer's own database, never by an error or a missing answer."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol, Self, TypeVar
from uuid import UUID

from mqbroker_client.barrier.dialects import KEPT_DAYS, LOCK_WAIT_SECONDS, PURGE_ROWS
from mqbroker_client.barrier.errors import AlreadyCommitted, TransactionAbandoned
from mqbroker_client.barrier.sessions import Connection, DriverSessions, OwnSession, Sessions
from mqbroker_client.barrier.table import Table
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.messages import Message
from mqbroker_client.core.states import LocalTransactionState, Outcome, unknown

Found = TypeVar("Found")

log = logging.getLogger(__name__)

#: When a batch of checks is answered, the first inserts, which do not wait for locks, may take this many seconds
#: together. Then each insert that found a lock is repeated, and waits for the lock.
INSERTS_SECONDS = 1.5
# The shortest wait for a lock. With less time left, no statement is sent.
SHORTEST_WAIT_SECONDS = 0.02
# The row of an older half message may be deleted already. The hour is a reserve for different clocks of broker and
# database.
ANSWERED_FOR = timedelta(days=KEPT_DAYS) - timedelta(hours=1)


# Attempts to create the table and its two indexes: another process may create each of them at the same time.
RACES = 3


class Aside(Protocol):
    """Type of a function that runs blocking work; with an event loop, in a thread."""

    def __call__(self, run: Callable[[], Found]) -> Found: ...


def at_once(run: Callable[[], Found]) -> Found:
    """Calls a blocking function directly: for code without an event loop that the function could block."""
    return run()


@dataclass(slots=True)
class _Batch:
    """Checks that are answered together, and their outcomes so far."""

    halves: Sequence[HalfMessage]
    found: dict[UUID, LocalTransactionState] = field(default_factory=dict)
    reasons: dict[UUID, str] = field(default_factory=dict)

    def missing(self) -> list[HalfMessage]:
        return [half for half in self.halves if half.transaction_id not in self.found]

    def outcomes(self) -> list[Outcome]:
        return [self._outcome(half.transaction_id) for half in self.halves]

    def _outcome(self, transaction_id: UUID) -> Outcome:
        if transaction_id in self.found:
            return Outcome(self.found[transaction_id])
        return unknown(self.reasons.get(transaction_id, "no row was found"))


class Barrier:
    """A producer group's barrier. Safe to share between threads, and to make before a fork.

    `connect` returns a new connection of a driver to the database in which the local transactions run. The barrier is
    also a check: pass it to `CheckListener` and `CheckPoller`.
    """

    def __init__(self, connect: Callable[[], Connection], producer_group: str) -> None:
        self.sessions: Sessions = DriverSessions(connect)
        self.producer_group = producer_group

    @classmethod
    def over(cls, sessions: Sessions, producer_group: str) -> Self:
        """A barrier that uses the sessions of a framework."""
        made = cls.__new__(cls)
        made.sessions, made.producer_group = sessions, producer_group
        return made

    def create_table(self) -> None:
        """Creates `mqbroker_barrier` if it does not exist; each process of a program may call it at its start."""
        for left in reversed(range(RACES + 1)):
            try:
                self.in_own_session(lambda table: table.create())
                break
            except Exception:
                # Another process may have created the table or an index at the same moment, for which PostgreSQL
                # reports an error in spite of IF NOT EXISTS.
                if not left:
                    raise

    def insert_commit(
        self,
        connection: Connection,
        transaction_id: UUID,
        messages: Sequence[Message] | None = None,
        *,
        aside: Aside = at_once,
    ) -> None:
        """Inserts the row COMMIT, within the local transaction that does the program's other writes.

        `messages` stay in the row until the broker is back. Raises TransactionAbandoned after a check that was answered
        ROLLBACK, AlreadyCommitted when the id has committed before, or the driver's error; after each of these the
        caller must roll back. Raises OutsideTransaction for a connection in autocommit mode, and writes nothing.
        """
        table = self._table_of(connection)
        try:
            table.insert_commit(transaction_id, messages)
        except Exception as error:
            decision = aside(lambda: self._decision(transaction_id))
            if decision is LocalTransactionState.ROLLBACK:
                raise TransactionAbandoned(transaction_id) from error
            if decision is LocalTransactionState.COMMIT:
                raise AlreadyCommitted(transaction_id) from error
            raise

    def keep(self, connection: Connection, transaction_id: UUID, messages: Sequence[Message]) -> None:
        """Stores messages in the row that the same local transaction has inserted."""
        self._table_of(connection).keep(transaction_id, messages)

    def found_in(self, connection: Connection, transaction_ids: Sequence[UUID]) -> set[UUID]:
        """The ids whose rows still exist in the local transaction: a rollback to a savepoint has removed the others."""
        return set(self._table_of(connection).find(transaction_ids))

    def check(self, half: HalfMessage) -> LocalTransactionState:
        """The outcome of a single half message: see `answer`."""
        [outcome] = self.answer([half])
        return outcome.state

    __call__ = check

    def answer(self, halves: Sequence[HalfMessage]) -> list[Outcome]:
        """COMMIT or ROLLBACK for a half with a committed row, else UNKNOWN; within 0.5 s for one half.

        For a missing row it inserts ROLLBACK, so that the local transaction cannot commit any more. While the local
        transaction runs, its row is locked: the other halves of a batch do not wait for this lock. Afterwards the call
        waits for all locked rows together, for 0.5 s. All inserts together take at most 2 s.
        """
        batch = _Batch(halves)
        try:
            self._in_own_session(lambda session: self._answer(session, batch))
        except Exception as error:  # noqa: BLE001  the errors of drivers have no common class
            # An error of the driver does not show whether a transaction was committed.
            batch.reasons |= {half.transaction_id: _reason(error) for half in batch.missing()}
        return batch.outcomes()

    def purge(self) -> int:
        """Deletes rows older than 14 days, 1,000 per statement; returns the number of deleted rows."""
        deleted = purged = self.in_own_session(Table.purge)
        while purged == PURGE_ROWS:
            deleted += (purged := self.in_own_session(Table.purge))
        return deleted

    def in_own_session(self, work: Callable[[Table], Found]) -> Found:
        """Runs work on the table in a separate session of the barrier."""
        return self._in_own_session(lambda session: work(Table(session, self.producer_group)))

    def _in_own_session(self, work: Callable[[OwnSession], Found]) -> Found:
        def run() -> Found:
            with closing(self.sessions.open()) as session:
                return work(OwnSession.prepared(session))

        return self.sessions.run(run)

    def _table_of(self, connection: Connection) -> Table:
        return Table(self.sessions.of(connection), self.producer_group)

    def _decision(self, transaction_id: UUID) -> LocalTransactionState | None:
        # The read needs a new session: the failed session accepts no more statements, or its snapshot does not have the
        # row.
        try:
            return self.in_own_session(lambda table: table.find([transaction_id])).get(transaction_id)
        except Exception as error:  # noqa: BLE001  the errors of drivers have no common class
            log.warning("transaction %s: its row could not be read: %s", transaction_id, error)
            return None

    def _answer(self, session: OwnSession, batch: _Batch) -> None:
        table = Table(session, self.producer_group)
        batch.found |= table.find([half.transaction_id for half in batch.halves])
        tried = _without_purged(batch)
        if not tried:
            return
        # With a single half message the first insert may wait for the lock, because no other half message is delayed.
        locked = tried if len(tried) == 1 else self._roll_back(session, tried, batch)
        self._roll_back_locked(session, locked, batch)
        # The rows are read after each insert, error or conflict, because only a committed row decides.
        batch.found |= table.find([half.transaction_id for half in tried])

    def _roll_back(self, session: OwnSession, halves: Sequence[HalfMessage], batch: _Batch) -> list[HalfMessage]:
        """Inserts the rows that no transaction has locked; returns the halves whose rows are still locked."""
        table = Table(session.waiting(0), self.producer_group)
        give_up_at = time.monotonic() + INSERTS_SECONDS
        left = list(halves)
        for half in halves:
            if time.monotonic() > give_up_at:
                break
            if _is_decided(table, half, batch):
                left.remove(half)
        return left

    def _roll_back_locked(self, session: OwnSession, halves: Sequence[HalfMessage], batch: _Batch) -> None:
        give_up_at = time.monotonic() + LOCK_WAIT_SECONDS
        for half in halves:
            if (seconds := give_up_at - time.monotonic()) < SHORTEST_WAIT_SECONDS:
                batch.reasons.setdefault(half.transaction_id, "not reached within 2 s")
                continue
            _is_decided(Table(session.waiting(seconds), self.producer_group), half, batch)


def _is_decided(table: Table, half: HalfMessage, batch: _Batch) -> bool:
    """Inserts ROLLBACK. True unless the insert raised an error, which may be a lock; notes the error in `batch`."""
    try:
        written = table.insert_rollback(half.transaction_id, half.producer_group)
    except Exception as error:  # noqa: BLE001  the errors of drivers have no common class
        batch.reasons[half.transaction_id] = _reason(error)
        return False
    if not written:
        batch.reasons[half.transaction_id] = "no row was written: the server is read-only"
    return True


def _without_purged(batch: _Batch) -> list[HalfMessage]:
    """The halves without a row, except old halves whose rows may have been purged."""
    missing = batch.missing()
    old = [half for half in missing if _may_be_purged(half)]
    batch.reasons |= {
        half.transaction_id: f"stored more than {KEPT_DAYS} days ago: its row may be deleted" for half in old
    }
    return [half for half in missing if half not in old]


def _may_be_purged(half: HalfMessage) -> bool:
    return half.stored_at is not None and half.stored_at < datetime.now(UTC) - ANSWERED_FOR


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
