"""Ties messages to the root transaction of their connection, whichever session or program ends it.

A session that is bound to a connection may take part in a transaction that another owner ends: then the session's
commit() commits nothing. So this module listens to the events of the engine, not of the session.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Connection, Engine, event
from sqlalchemy.orm import SessionTransaction

from mqbroker_client.barrier.commits import Ending, commit
from mqbroker_client.barrier.errors import BarrierError
from mqbroker_client.barrier.steps import CommitSteps
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.messages import Message

# The connection's execution option that holds the messages of its transaction. Each outbox sees the option. The option
# ends with the connection, while `Connection.info` stays with the pool.
OPTION = "mqbroker_followed"


@dataclass(slots=True, eq=False)
class Staged:
    """A message with the transactions to which it belongs: the savepoints of its session, and the session's
    transaction.
    """

    message: Message
    within: Sequence[SessionTransaction]
    #: Whether the session of the message has committed. If the session had joined a transaction of another owner, that
    #: transaction may still be open.
    is_complete: bool = False
    #: The row that marks a savepoint in which the session committed: a rollback to the savepoint removes it.
    mark: UUID | None = None


@dataclass(slots=True)
class Followed:
    """The messages that one outbox has staged in the open root transaction of a connection."""

    steps: CommitSteps
    staged: list[Staged] = field(default_factory=list)
    ending: Ending | None = None


def stage(connection: Connection, steps: CommitSteps, staged: Sequence[Staged]) -> None:
    """Ties messages to the connection's root transaction, unless they are already tied to it."""
    _listen(connection.engine)
    if OPTION not in connection.get_execution_options():
        connection.execution_options(**{OPTION: {}})
    followed = _followed(connection).setdefault(id(steps), Followed(steps))
    followed.staged += [one for one in staged if one not in followed.staged]


def complete(connection: Connection, steps: CommitSteps, staged: Sequence[Staged]) -> None:
    """Notes that the messages' session commits, perhaps only a savepoint.

    For a savepoint it inserts a row as a mark.
    """
    mark = uuid7() if connection.in_nested_transaction() else None
    if mark is not None:
        steps.barrier.insert_commit(connection, mark, aside=steps.aside)
    for one in staged:
        one.is_complete, one.mark = True, mark
    stage(connection, steps, staged)


def drop(connection: Connection, steps: CommitSteps, staged: Sequence[Staged]) -> None:
    """Drops the messages of a session's savepoint or transaction that was rolled back."""
    if (followed := _followed(connection).get(id(steps))) is not None:
        followed.staged = [one for one in followed.staged if one not in staged]


def prepare(connection: Connection) -> None:
    """Just before the COMMIT, inserts rows and stores half messages. Raises an error that forbids the COMMIT."""
    for followed in _followed(connection).values():
        if followed.ending is not None:
            continue
        _require_complete(followed)
        if messages := _left(connection, followed):
            followed.ending = Ending(followed.steps, followed.steps.before_commit(connection, messages))


def settle(connection: Connection) -> None:
    """Sends the ends that the barrier's rows state, for a transaction that ended without a plain COMMIT, for example in
    two phases.
    """
    for ending in _taken(connection):
        ending.by_its_row()


def _followed(connection: Connection) -> dict[int, Followed]:
    found: dict[int, Followed] = connection.get_execution_options().get(OPTION, {})
    return found


def _taken(connection: Connection) -> list[Ending]:
    followed = _followed(connection)
    endings = [one.ending for one in followed.values() if one.ending is not None]
    followed.clear()
    return endings


def _require_complete(followed: Followed) -> None:
    if not all(one.is_complete for one in followed.staged):
        raise BarrierError(
            "a session that has joined this transaction has sent messages and was neither committed nor rolled back: "
            "call its commit() before that of the connection"
        )


def _left(connection: Connection, followed: Followed) -> list[Message]:
    """The messages whose savepoints were not rolled back: their marks still exist."""
    marks = {one.mark for one in followed.staged if one.mark is not None}
    left = followed.steps.barrier.found_in(connection, list(marks)) if marks else set()
    return [one.message for one in followed.staged if one.mark is None or one.mark in left]


def _listen(engine: Engine) -> None:
    if event.contains(engine, "commit", _commit):
        return
    event.listen(engine, "begin", _begun)
    event.listen(engine, "begin_twophase", _begun_twophase)
    event.listen(engine, "commit", _commit)
    event.listen(engine, "rollback", _rolling_back)
    event.listen(engine, "prepare_twophase", _prepare_twophase)
    event.listen(engine, "commit_twophase", _commit_twophase)


def _begun(connection: Connection) -> None:
    _followed(connection).clear()


def _begun_twophase(connection: Connection, xid: object) -> None:
    _begun(connection)


def _commit(connection: Connection) -> None:
    """Commits just before SQLAlchemy would; SQLAlchemy's own COMMIT then ends an empty transaction.

    SQLAlchemy has no event after a COMMIT. With `exec_driver_sql` errors still belong to SQLAlchemy's classes.
    """
    if not _followed(connection):
        return
    try:
        prepare(connection)
    except BaseException:
        # After a failed COMMIT, SQLAlchemy sends ROLLBACK only when the connection goes back to its pool.
        _roll_back(connection)
        settle(connection)
        raise
    if endings := _taken(connection):
        commit(
            endings,
            by=lambda: connection.exec_driver_sql("COMMIT"),
            or_roll_back=lambda: _roll_back(connection),
        )


def _rolling_back(connection: Connection) -> None:
    if endings := _taken(connection):
        # Rolled back here, because rows stay locked until then, and SQLAlchemy raises this event before its rollback.
        _roll_back(connection)
        for ending in endings:
            ending.by_its_row()


def _prepare_twophase(connection: Connection, xid: object) -> None:
    prepare(connection)


def _commit_twophase(connection: Connection, xid: object, is_prepared: bool) -> None:
    # After this SQLAlchemy raises no event. With `twophase` the session itself sends the ends; for a joined transaction
    # a check finds the outcome.
    if not is_prepared:
        prepare(connection)


def _roll_back(connection: Connection) -> None:
    with suppress(Exception):  # the connection may be lost: the caller raises the error that broke it
        connection.dialect.do_rollback(connection.connection)
