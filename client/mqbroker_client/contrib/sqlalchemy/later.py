"""Runs functions after the commit of a session's transaction, but not if it or their savepoint is rolled back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session, SessionTransaction

from mqbroker_client.contrib.sqlalchemy.outbox import AnySession, open_transaction, own_session, with_parents


@dataclass(slots=True)
class _Waiting:
    """The functions that wait in the open transaction."""

    runs: list[tuple[list[SessionTransaction], Callable[[], object]]] = field(default_factory=list)
    is_committed: bool = False


def at_commit(session: AnySession, run: Callable[[], object]) -> None:
    """Runs this function after the commit of the session's transaction; begins a transaction if none is open."""
    own = own_session(session)
    if _Waiting not in own.info:
        own.info[_Waiting] = _Waiting()
        event.listen(own, "after_commit", _committed)
        event.listen(own, "after_soft_rollback", _rolled_back)
        event.listen(own, "after_transaction_end", _ended)
    own.info[_Waiting].runs.append((with_parents(open_transaction(own)), run))


def _committed(session: Session) -> None:
    # SQLAlchemy also raises this event when a savepoint is released, which is not a commit.
    session.info[_Waiting].is_committed = not session.in_nested_transaction()


def _rolled_back(session: Session, ended: SessionTransaction) -> None:
    waiting: _Waiting = session.info[_Waiting]
    waiting.runs = [one for one in waiting.runs if ended not in one[0]]


def _ended(session: Session, ended: SessionTransaction) -> Any:
    if ended.parent is not None:
        return
    waiting: _Waiting = session.info[_Waiting]
    session.info[_Waiting] = _Waiting()
    for _, run in waiting.runs if waiting.is_committed else ():
        run()
