"""How a transaction of a pipeline ends that has no answers: rolled back, never begun, or unknown."""

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGresult

# The constraint that refuses messages of topics which have left a cell.
GUARD = "topic_has_gone"
# Another process got in between: the same id, the same locks in another order. Or the session was ended: by an
# administrator, or because this process was stopped as it sent; with the server, where the next connection fails.
PASSING = frozenset(("23505", "40001", "40P01", "57P01"))
LOCK_NOT_AVAILABLE = "55P03"
# Read-only, out of resources, ended by the operator or by a time-out of the server.
READ_ONLY = "25006"
DISK_FULL = "53100"
NAMED = (READ_ONLY, DISK_FULL)  # a refusal has words of its own for these
AWAY = (READ_ONLY, "53", "57")
SESSION_GONE = (READ_ONLY, "57P")
# One operation fails all of a batch, or holds it up: halves find it.
OF_ONE_OPERATION = ("22", "23", "54", "55", "25P04")


class Failed(Exception):
    """The transaction was rolled back; `code` is PostgreSQL's SQLSTATE. It may have ended the session, too.

    `constraint` is the name of the one that was broken.
    """

    def __init__(self, code: str, message: str, *, ends_session: bool = False, constraint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.ends_session = ends_session
        self.constraint = constraint

    @property
    def is_locked(self) -> bool:
        """Whether a lock was waited for in vain."""
        return self.code == LOCK_NOT_AVAILABLE

    @property
    def is_passing(self) -> bool:
        """Whether the same transaction, sent again, may do."""
        return self.code in PASSING

    @property
    def is_away(self) -> bool:
        """Whether no transaction that writes would do now."""
        return self.code.startswith(AWAY)

    @property
    def is_session_gone(self) -> bool:
        """Whether a new connection may do better."""
        return self.code.startswith(SESSION_GONE)

    @property
    def may_be_of_one(self) -> bool:
        """Whether one operation of several may have failed them all."""
        return self.code.startswith(OF_ONE_OPERATION) and self.constraint != GUARD

    def of_psycopg(self) -> psycopg.Error:
        """As psycopg raises what refuses writes."""
        kind = psycopg.errors.lookup(self.code) if self.code in NAMED else psycopg.OperationalError
        return kind(str(self))


class NotBegun(Failed):
    """The server ended the session before it had read the transaction: nothing was stored."""

    def __init__(self, end: Failed) -> None:
        # Of a session that an administrator ended: the reason of the end may concern the transaction before.
        super().__init__("57P01", str(end), ends_session=True)


class NotSent(Exception):
    """The connection broke before the transaction's commit had left: nothing was stored."""


class Lost(Exception):
    """The connection broke before the answer: whether the transaction was committed is unknown."""


def failure_of(result: PGresult) -> Failed | None:
    """The server's error. None for what proves nothing: an error of libpq's own, or the end of a session by a proxy.

    A proxy names no place in the server's source; the server behind it may go on with what it has.
    """
    code = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    ends_session = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) in (b"FATAL", b"PANIC")
    if not code or (ends_session and not result.error_field(pq.DiagnosticField.SOURCE_FILE)):
        return None
    message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    constraint = (result.error_field(pq.DiagnosticField.CONSTRAINT_NAME) or b"").decode("utf-8", "replace")
    return Failed(code, message.decode("utf-8", "replace"), ends_session=ends_session, constraint=constraint)
