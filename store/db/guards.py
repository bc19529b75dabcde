"""What the database must be for an acknowledgement to mean something; looked at before the start and by /readyz."""

from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from store.db import patience
from store.db.conninfo import conninfo
from store.db.patience import PatientConnection
from store.db.statements import Statement


class ServerState(NamedTuple):
    """The server behind a session, and the session's own settings."""

    fsync: str
    full_page_writes: str
    synchronous_commit: str
    enable_seqscan: str
    read_only: str
    pid: int
    citus: bool


LOOK_AT_SERVER = Statement(__file__, "look_at_server", ServerState)

OFF = "{} is off on the database server: a crash could lose what was acknowledged. Turn it on there."
POOLED = (
    "a proxy in front of the database gives one session to several clients by turns (transaction pooling): prepared "
    "statements, locks and notices do not survive that. Let DATABASE_URL name the server itself, or pool by session."
)
STRIPPED = (
    "a proxy in front of the database drops the broker's session settings: let DATABASE_URL name the server itself."
)
CITUS = (
    "the database has the extension citus, through which acknowledged messages are lost: "
    "docs/decisions/0041-cells-of-plain-postgresql.md has the figures. Use a database without it."
)
READ_ONLY = "the database is read-only: it answers reads and refuses every write. Writes need the primary."


class Unfit(Exception):
    """The database cannot keep what it acknowledges."""


class Look(NamedTuple):
    """The reasons why the broker must not serve on this database, and what it can serve with."""

    reasons: Sequence[str]
    warnings: Sequence[str]


def look(application: str, url: str = "") -> Look:
    """What speaks against the database of the settings, or of a URL, by connections of its own.

    Raises psycopg's OperationalError when it is away, or does not answer in time (`patience`).
    """
    try:
        with PatientConnection.connect(conninfo(application, url), autocommit=True) as session:
            state = _state_of(session)
            reasons = _reasons(state)
            # A proxy makes up the number that its client would cancel by.
            if session.info.backend_pid != state.pid and _is_shared(application, url, state.pid):
                reasons.append(POOLED)
    except psycopg.OperationalError as problem:
        if "unsupported startup parameter" not in str(problem):
            raise
        return Look([STRIPPED], ())
    return Look(reasons, [READ_ONLY] if state.read_only == "on" else [])


@patience.of(patience.REQUEST_SECONDS)
def require_fit(application: str) -> None:
    """Raises Unfit with every reason; a database that is away now may be fit when it comes."""
    try:
        reasons = look(application).reasons
    except psycopg.OperationalError:
        return
    if reasons:
        raise Unfit(f"The database cannot be used: {'; '.join(reasons)}")


def _reasons(state: ServerState) -> list[str]:
    reasons = [OFF.format(name) for name in ("fsync", "full_page_writes") if getattr(state, name) == "off"]
    if state.enable_seqscan != "off" or state.synchronous_commit != "on":
        reasons.append(STRIPPED)
    if state.citus:
        reasons.append(CITUS)
    return reasons


def _is_shared(application: str, url: str, pid: int) -> bool:
    """Whether another session, in a transaction, is given the same process while the first one is open."""
    with PatientConnection.connect(conninfo(application, url)) as other:
        return _state_of(other).pid == pid


def _state_of(session: psycopg.Connection) -> ServerState:
    with session.cursor(row_factory=LOOK_AT_SERVER.rows) as cursor:
        cursor.execute(LOOK_AT_SERVER.sql())
        state = cursor.fetchone()
    assert state is not None
    return state
