"""The two databases of a move of topics, old and new. The process that moves them has one session in each.

The code is synchronous, keeps its session from beginning to end and never opens a second one. So another process that
takes the move over only has to end these sessions: this process can then change nothing more.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self, TypeVar

import psycopg
from psycopg.sql import SQL, Composed

from store.db import fences
from store.db.conninfo import conninfo
from store.db.health import READ_CLOCK
from store.db.patience import PatientConnection
from store.db.statements import Statement
from store.errors import CellAway
from store.rows import Replay, SideFacts

Row = TypeVar("Row")


TAKE_CELL_ID = Statement(__file__, "take_cell_id", one=int)
LOOK_AT_SIDE = Statement(__file__, "look_at_side", SideFacts)
READ_POSITION = Statement(__file__, "read_position", one=str)
READ_REPLAY = Statement(__file__, "read_replay", Replay)
PROMOTE = Statement(__file__, "promote", one=bool)
SKIP_NUMBERS = Statement(__file__, "skip_numbers", one=int)
NOTE_FIRST_NUMBERS = Statement(__file__, "note_first_numbers")
BECOME_CELL = Statement(__file__, "become_cell")
PLACE_TOPICS = Statement(__file__, "place_topics")

# A purge of many rows scans a whole table, which no statement of the message path may do.
SETTINGS = (
    b"SET statement_timeout = '60s'; SET lock_timeout = '3s'; SET enable_seqscan = on; SET plan_cache_mode = auto; "
    b"SET default_transaction_read_only = off"
)


OUST_SECONDS = 5.0
LOOK_SECONDS = 0.001


class Side:
    """A database of a move, with a session that may write while the cell is fenced. The methods raise CellAway."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        with self._answering():
            self._session = PatientConnection.connect(conninfo(fences.MOVER, url), autocommit=True)
            self._session.execute(SETTINGS)

    @property
    def pid(self) -> int:
        """The id of the session's server process."""
        return self._session.info.backend_pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def ask(self, statement: Statement[Row], **parameters: Any) -> Sequence[Row]:
        """The rows that a statement returns in this database."""
        with self._answering(), self._session.cursor(row_factory=statement.rows) as cursor:
            cursor.execute(statement.sql(), parameters)
            return cursor.fetchall() if cursor.description is not None else ()

    def one(self, statement: Statement[Row], **parameters: Any) -> Row:
        """The only row that a statement returns in this database."""
        [row] = self.ask(statement, **parameters)
        return row

    def change(self, statement: Composed | SQL) -> None:
        """Executes a statement about the database itself, or about a table's constraints."""
        with self._answering():
            self._session.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A context manager for one transaction of this session."""
        with self._answering(), self._session.transaction():
            yield

    def look(self) -> SideFacts:
        """The identity of the server, and of the database on it."""
        return self.one(LOOK_AT_SIDE)

    def depart(self, topics: Sequence[int], queues: Sequence[int]) -> None:
        """Notes topics and queues that have left, and makes the database refuse messages of these topics.

        Call it in a transaction.
        """
        self.change(fences.DROP_GUARD)
        if topics:
            self.change(fences.guard(topics))
        self.ask(fences.SET_DEPARTED, topics=list(topics), queues=list(queues))

    def oust(self, before: datetime | None = None, pids: Sequence[int] | None = None) -> list[int]:
        """Ends sessions of the broker that began before a time or have these `pids`. Returns the pids that remain."""
        parameters = {"mover": fences.MOVER, "before": before, "pids": pids}
        return [one.pid for one in self.ask(fences.OUST_SESSIONS, **parameters)]

    def oust_readers(self) -> None:
        """Ends sessions that began while the database was read-only for new sessions, because they stay read-only.

        Called after the transaction that makes new sessions writable again. A session that was just beginning at that
        time soon appears in the list of sessions.
        """
        now, until = self.one(READ_CLOCK), time.monotonic() + OUST_SECONDS
        while self.oust(before=now) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)

    def take_over(self, own: Sequence[int] = ()) -> None:
        """Ends the sessions of other runs in this database. `own`: the pids of this run's other sessions."""
        self.ask(fences.OUST_MOVERS, mover=fences.MOVER, own=list(own))

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as problem:
            reason = " ".join(str(problem).split()) or type(problem).__name__
            raise CellAway(f"The database of {self.name} is away ({reason}).") from problem
