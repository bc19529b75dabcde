"""`send` in a session: the messages are stored right before its COMMIT, and become visible right after it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from sqlalchemy import Connection, Engine, event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.orm import Session, SessionTransaction, scoped_session, sessionmaker

from mqbroker_client.barrier.answering import RegularWork
from mqbroker_client.barrier.bodies import encoded
from mqbroker_client.barrier.decisions import at_once
from mqbroker_client.barrier.errors import BarrierError, OutsideTransaction
from mqbroker_client.barrier.kept import KeptMessages
from mqbroker_client.barrier.steps import CommitSteps, OnUnavailable
from mqbroker_client.contrib.sqlalchemy import following
from mqbroker_client.contrib.sqlalchemy.barrier import EngineBarrier
from mqbroker_client.contrib.sqlalchemy.following import Staged
from mqbroker_client.contrib.sqlalchemy.sessions import connection_of, in_a_thread, require_same_database
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.messages import Message, MessageFields
from mqbroker_client.core.producers import Producer
from mqbroker_client.core.states import LocalTransactionState, Outcome

AnySession = Session | AsyncSession | scoped_session[Any] | async_scoped_session[Any]


@dataclass(slots=True)
class _Work:
    """The messages that a session has staged in the open transaction."""

    staged: list[Staged] = field(default_factory=list)
    #: The session's savepoints that have been released.
    released: list[SessionTransaction] = field(default_factory=list)
    #: Whether the session has begun its COMMIT. A transaction whose COMMIT failed cannot be committed any more.
    is_begun: bool = False
    #: Whether all steps before the COMMIT are done. A subclass of a session class with listeners gets each event twice.
    is_ready: bool = False
    #: The connection whose transaction the messages follow, when it is known.
    connection: Connection | None = None
    #: Whether closing the session without a commit undoes all its work.
    is_undone_by_close: bool = True


class Outbox:
    """Sends messages with the transactions of the sessions to which the outbox listens. Safe to share between threads.

    `engine` leads to the database with the barrier's table: the engine of the sessions, or one of the engines of their
    `binds`. The outbox is also a check: pass it to `CheckListener` and `CheckPoller`.
    """

    def __init__(
        self, producer: Producer, engine: Engine | AsyncEngine, *, on_unavailable: OnUnavailable = "fail"
    ) -> None:
        self.producer = producer
        self.engine = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
        self.barrier = EngineBarrier(self.engine, producer.group)
        aside = in_a_thread if self.engine.dialect.is_async else at_once
        self.steps = CommitSteps(producer, self.barrier, on_unavailable, aside)
        self.work = RegularWork(producer, self.barrier, self.steps.kept)
        self._classes: list[type[Session]] = []

    def listen(self, maker: "sessionmaker[Any] | async_sessionmaker[Any]") -> None:
        """Makes each session of the maker send its staged messages. A second call for this maker changes nothing."""
        given = maker.kw.get("sync_session_class") if isinstance(maker, async_sessionmaker) else maker.class_
        if given in self._classes:
            return
        kind = _own_sync_class(maker) if isinstance(maker, async_sessionmaker) else maker.class_
        self._classes.append(kind)
        event.listen(kind, "before_commit", self._before_commit)
        event.listen(kind, "after_commit", self._after_commit)
        event.listen(kind, "after_rollback", self._after_rollback)
        event.listen(kind, "after_transaction_end", self._after_transaction_end)

    def send(self, session: AnySession, topic: str, body: object, **fields: Unpack[MessageFields]) -> Message:
        """Sends a message with the session's transaction: both are committed, or neither is.

        `body` is bytes, a text, or a value that JSON can express. Like a statement, `send` begins a transaction if none
        is open. Raises OutsideTransaction if the session does not begin transactions by itself (`autobegin=False`),
        BarrierError for a session of another database or of a maker to which the outbox does not listen. A broker error
        at the COMMIT rolls back, and the COMMIT raises the error.
        """
        own = own_session(session)
        if not isinstance(own, tuple(self._classes)):
            raise BarrierError("the outbox does not listen to this session: call outbox.listen(sessionmaker) first")
        require_same_database(own, self.engine)
        message = Message(topic, encoded(body), **fields)
        transaction = open_transaction(own)
        work: _Work = own.info.setdefault(self, _Work())
        staged = Staged(message, with_parents(transaction))
        work.staged.append(staged)
        if isinstance(own.bind, Connection) and own.bind.in_transaction():
            # The session may be joined to this transaction, which must not commit before the session has committed or
            # rolled back.
            work.connection = own.bind
            work.is_undone_by_close &= _is_undone_by_close(own, own.bind)
            following.stage(own.bind, self.steps, [staged])
        return message

    def answer(self, halves: Sequence[HalfMessage]) -> list[Outcome]:
        """Answers a check from the barrier's rows; arguments and result are the same as for `Barrier.answer`."""
        return self.barrier.answer(halves)

    def __call__(self, half: HalfMessage) -> LocalTransactionState:
        return self.barrier.check(half)

    @property
    def kept(self) -> KeptMessages:
        """The messages that `on_unavailable="keep"` has stored in rows, to list, send or drop them."""
        return self.steps.kept

    def answer_checks(self, *, seconds: float = 30.0) -> int:
        """Answers due checks and sends kept messages; returns the number of answers. For a scheduler."""
        return self.work.once(seconds=seconds)

    def _before_commit(self, session: Session) -> None:
        work: _Work | None = session.info.get(self)
        if work is None or work.is_ready or session.in_nested_transaction():
            return
        if work.is_begun:
            raise BarrierError("the transaction must be rolled back: its messages were not stored when it committed")
        if not work.staged:
            return
        # Flushed first, so that a failing statement fails before the half message is stored.
        session.flush()
        work.is_begun = True
        work.connection = connection_of(session, self.engine)
        following.complete(work.connection, self.steps, work.staged)
        if not isinstance(session.bind, Connection):
            # The session is not joined to another transaction; if it has several databases, none of them has committed
            # yet.
            following.prepare(work.connection)
        work.is_ready = True

    def _after_commit(self, session: Session) -> None:
        work: _Work | None = session.info.get(self)
        if work is not None and (savepoint := session.get_nested_transaction()) is not None:
            work.released.append(savepoint)

    def _after_rollback(self, session: Session) -> None:
        work: _Work | None = session.info.get(self)
        if work is not None and not session.in_nested_transaction():
            self._drop(work, work.staged)

    def _after_transaction_end(self, session: Session, transaction: SessionTransaction) -> None:
        work: _Work | None = session.info.get(self)
        if work is None:
            return
        if transaction.nested and transaction not in work.released:
            self._drop(work, [one for one in work.staged if transaction in one.within])
        elif transaction.parent is None:
            del session.info[self]
            if not work.is_begun and work.is_undone_by_close:
                self._drop(work, work.staged)
            elif work.connection is not None and not isinstance(session.bind, Connection):
                following.settle(work.connection)

    def _drop(self, work: _Work, staged: Sequence[Staged]) -> None:
        if work.connection is not None:
            following.drop(work.connection, self.steps, staged)
        work.staged = [one for one in work.staged if one not in staged]


def _is_undone_by_close(session: Session, connection: Connection) -> bool:
    """Whether closing the session rolls back its work: the session has its own savepoint, or ends the connection's
    transaction.
    """
    if session.join_transaction_mode == "conditional_savepoint":
        return connection.in_nested_transaction() and not session.in_nested_transaction()
    return session.join_transaction_mode != "rollback_only"


def own_session(session: AnySession) -> Session:
    """The synchronous session of an asynchronous session, or of the current scope."""
    found = session() if isinstance(session, scoped_session | async_scoped_session) else session
    return found.sync_session if isinstance(found, AsyncSession) else found


def _own_sync_class(maker: "async_sessionmaker[Any]") -> type[Session]:
    """Gives a maker its own class of synchronous sessions, to which no other maker's events go. Returns this class."""
    given: Any = maker.kw.get("sync_session_class") or maker.class_.sync_session_class
    if isinstance(given, sessionmaker):
        return given.class_
    own = type(given.__name__, (given,), {})
    maker.configure(sync_session_class=own)
    return own


def open_transaction(session: Session) -> SessionTransaction:
    """The open transaction or savepoint; begins a transaction if none is open. Raises OutsideTransaction."""
    if found := session.get_nested_transaction() or session.get_transaction():
        return found
    if not session.autobegin:
        raise OutsideTransaction(
            "no transaction of the session is open, and it begins none by itself: call session.begin(), "
            "or use Producer.send for a message without one"
        )
    # The session has no connection yet, so there is nothing to await.
    return session.begin()


def with_parents(transaction: SessionTransaction | None) -> "list[SessionTransaction]":
    """A savepoint, the savepoints that enclose it, and the transaction."""
    found = []
    while transaction is not None:
        found.append(transaction)
        transaction = transaction.parent
    return found
