"""The properties a database must have so that acknowledged messages are safe; checked at the start and by /readyz."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psycopg
from django.conf import settings

from store.db import patience, pooling
from store.db.conninfo import conninfo, is_pooled
from store.db.patience import PatientConnection
from store.db.session import PLAIN
from store.db.statements import Statement
from store.process import runtime
from store.rows import ServerState

LOOK_AT_SERVER = Statement(__file__, "look_at_server", ServerState)

DURABLE = ("fsync", "full_page_writes")
OFF = "{} is off on the database server: a crash could lose what was acknowledged. Turn it on there."
POOLED = (
    "a proxy in front of the database gives one session to several clients by turns (transaction pooling): let "
    "DATABASE_URL name the server itself, or say MQBROKER_DATABASE_POOLER=transaction."
)
STRIPPED = (
    "a proxy in front of the database drops the broker's session settings: let DATABASE_URL name the server itself, or "
    "say by MQBROKER_DATABASE_POOLER how the proxy pools."
)
UNSET = (
    "the pooler has sessions without the settings that the broker's role has by default: run `manage.py prepare`, then "
    "RECONNECT on the pooler's console."
)
UNPREPARED = (
    "the pooler does not know prepared statements again in another session: PgBouncer does since 1.22, where "
    "max_prepared_statements is above 0."
)
DIRECT = "DIRECT_DATABASE_URL leads to a pooler, too, or to another server: let it name the server behind the pooler."
SPREAD = (
    "several cells take no pooling by transaction, because a move of topics ends the sessions of a cell: pool by "
    "session, or let DATABASE_URL name the server itself."
)
CITUS = (
    "the database has the extension citus, through which acknowledged messages are lost: "
    "docs/decisions/0041-cells-of-plain-postgresql.md has the figures. Use a database without it."
)
ENCODED = (
    "the database's encoding is {}, which does not hold every text: make one with CREATE DATABASE … ENCODING 'UTF8' "
    "TEMPLATE template0."
)
# PostgreSQL compiles statements (JIT) again in each session.
UNLIKE = "sessions have {name} = {value}, and the broker needs {needed}: {line}"
READ_ONLY = "the database is read-only: it answers reads and refuses every write. Writes need the primary."


UTF8 = "UTF8"
# The statement that tests a pooler: one session prepares it, and repeats it after another session took its server
# process.
PROBE = "SELECT 1 AS probe"


class Unfit(Exception):
    """The database may lose messages that the broker has acknowledged, or cannot run the broker's statements."""


class Look(NamedTuple):
    """The reasons why the broker must not run on this database, and warnings that do not prevent it."""

    reasons: Sequence[str]
    warnings: Sequence[str]


def look(application: str, url: str = "", *, direct: bool = False) -> Look:
    """Examines the database of the settings, or of a URL, over new connections; `direct` without a pooler.

    Raises psycopg's OperationalError when the database is away, or does not answer in time (`patience`).
    """
    try:
        with PatientConnection.connect(conninfo(application, url, direct=direct), autocommit=True) as session:
            # If the encoding is not UTF8, the answers of the server could not be read.
            if encoded := _reasons_of_encoding(session):
                return Look(encoded, ())
            state = _state_of(session)
            pooled = is_pooled(url, direct=direct)
            reasons = _reasons(state, pooled=pooled)
            if pooled and settings.DATABASE_POOLER == pooling.TRANSACTION:
                reasons += _reasons_of_sharing(application, session)
            # A different process number comes from a proxy, which gives clients its own numbers.
            elif session.info.backend_pid != state.pid and _is_shared(application, url, state.pid, direct):
                reasons.append(POOLED)
            unlike = list(_unlike(session, state))
    except psycopg.OperationalError as problem:
        if "unsupported startup parameter" not in str(problem):
            raise
        return Look([STRIPPED], ())
    return Look(reasons, [*([READ_ONLY] if state.read_only == "on" else []), *unlike])


@patience.of(patience.REQUEST_SECONDS)
def require_fit(application: str, *, direct: bool = False) -> None:
    """Raises Unfit with every reason. A database that is away passes, because it may be fit when it returns."""
    try:
        reasons = look(application, direct=direct).reasons
    except psycopg.OperationalError:
        return
    if reasons:
        raise Unfit(f"The database cannot be used: {'; '.join(reasons)}")


def require_own_sessions(cells: int) -> None:
    """Raises Unfit if there are several cells and a pooler shares the control's sessions."""
    if cells > 1 and settings.DATABASE_POOLER == pooling.TRANSACTION:
        raise Unfit(f"The database cannot be used: {SPREAD}")


def _reasons_of_sharing(application: str, session: psycopg.Connection) -> list[str]:
    """The reasons why a pooler with transaction pooling cannot be used; empty if it can."""
    reasons = []
    with PatientConnection.connect(conninfo(application, direct=True)) as direct:
        own = _state_of(direct)
        if own.pid != direct.info.backend_pid or own.server != _state_of(session).server:
            reasons.append(DIRECT)
    session.execute(PROBE, prepare=True)
    with PatientConnection.connect(conninfo(application)) as other:
        # Behind a pooler by transaction, this transaction of `other` uses the server session that `session` used
        # before, so the next statement of `session` gets another server session.
        other.execute(PROBE)
        try:
            session.execute(PROBE, prepare=True)
        except (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement):
            reasons.append(UNPREPARED)
    if runtime.placement.topics_move:
        reasons.append(SPREAD)
    return reasons


def _reasons(state: ServerState, *, pooled: bool) -> list[str]:
    reasons = [OFF.format(name) for name in DURABLE if getattr(state, name) == "off"]
    if state.enable_seqscan != "off" or state.synchronous_commit != "on":
        reasons.append(UNSET if pooled else STRIPPED)
    if state.citus:
        reasons.append(CITUS)
    return reasons


def _reasons_of_encoding(session: psycopg.Connection) -> list[str]:
    encoding = session.info.parameter_status("server_encoding")
    return [] if encoding in (UTF8, None) else [ENCODED.format(encoding)]


def _unlike(session: psycopg.Connection, state: ServerState) -> Iterator[str]:
    """A warning for each setting that a session did not get; behind a pooler it gets the defaults of its role."""
    place = f"ALTER ROLE {session.info.user} IN DATABASE {session.info.dbname}"
    for (name, needed), value in zip(PLAIN.items(), state.plain, strict=True):
        # The server shows `DateStyle` with the order of day and month, on which the broker does not depend.
        if value.partition(",")[0] != needed:
            line = f"{place} SET {name} = '{needed}';"
            yield UNLIKE.format(name=name, value=value, needed=needed, line=line)


def _is_shared(application: str, url: str, pid: int, direct: bool) -> bool:
    """Whether another connection gets the same server process while the first connection is open."""
    with PatientConnection.connect(conninfo(application, url, direct=direct)) as other:
        return _state_of(other).pid == pid


def _state_of(session: psycopg.Connection) -> ServerState:
    with session.cursor(row_factory=LOOK_AT_SERVER.rows) as cursor:
        cursor.execute(LOOK_AT_SERVER.sql(), {"plain": list(PLAIN)})
        state = cursor.fetchone()
    assert state is not None
    return state
