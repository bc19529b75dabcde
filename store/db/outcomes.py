"""Outcomes of a transaction in a pipeline without its answers: rolled back, never begun, or unknown."""

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGresult

# The constraint that refuses messages of topics which have left a cell.
GUARD = "topic_has_gone"
# Another process interfered: it used the same id, or the same locks in another order. Or the session was ended: by an
# administrator, because this process was stopped while sending, or by the server's end (then the next connection
# fails).
PASSING = frozenset(("23505", "40001", "40P01", "57P01"))
LOCK_NOT_AVAILABLE = "55P03"
# The server is read-only or out of resources, or the statement was ended by an operator or by a time-out of the server.
READ_ONLY = "25006"
DISK_FULL = "53100"
NAMED = (READ_ONLY, DISK_FULL)  # these errors have their own refusals
AWAY = (READ_ONLY, "53", "57")
SESSION_GONE = (READ_ONLY, "57P")
# One operation may make its batch fail or wait: the batch is split into halves to find the operation.
OF_ONE_OPERATION = ("22", "23", "54", "55", "25P04")


class Failed(Exception):
    """The transaction was rolled back, and perhaps its session ended. `code` is PostgreSQL's SQLSTATE.

    `constraint` is the name of the violated constraint.
    """

    def __init__(self, code: str, message: str, *, ends_session: bool = False, constraint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.ends_session = ends_session
        self.constraint = constraint

    @property
    def is_locked(self) -> bool:
        """Whether the transaction failed because it did not get a lock in time."""
        return self.code == LOCK_NOT_AVAILABLE

    @property
    def is_passing(self) -> bool:
        """Whether the same transaction may succeed if it is sent again."""
        return self.code in PASSING

    @property
    def is_away(self) -> bool:
        """Whether no transaction that writes can succeed at present."""
        return self.code.startswith(AWAY)

    @property
    def is_session_gone(self) -> bool:
        """Whether a transaction may succeed on a new connection."""
        return self.code.startswith(SESSION_GONE)

    @property
    def may_be_of_one(self) -> bool:
        """Whether a single operation of a batch may be the cause."""
        return self.code.startswith(OF_ONE_OPERATION) and self.constraint != GUARD

    def of_psycopg(self) -> psycopg.Error:
        """The exception that psycopg would raise for this failure."""
        kind = psycopg.errors.lookup(self.code) if self.code in NAMED else psycopg.OperationalError
        return kind(str(self))


class NotBegun(Failed):
    """The server ended the session before it had read the transaction: nothing was stored."""

    def __init__(self, end: Failed) -> None:
        # If an administrator has ended the session, the server's message may be about an earlier transaction.
        super().__init__("57P01", str(end), ends_session=True)


class NotSent(Exception):
    """The connection broke before the transaction's commit was sent: nothing was stored."""


class Lost(Exception):
    """The connection broke before the answer: whether the transaction was committed is unknown."""


def failure_of(result: PGresult) -> Failed | None:
    """The server's error. None if it does not prove a rollback: an error of libpq, or a proxy that ended the session.

    A proxy's error names no place in the server's source code, and the server behind the proxy may continue the
    transaction.
    """
    code = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    ends_session = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) in (b"FATAL", b"PANIC")
    if not code or (ends_session and not result.error_field(pq.DiagnosticField.SOURCE_FILE)):
        return None
    message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    constraint = (result.error_field(pq.DiagnosticField.CONSTRAINT_NAME) or b"").decode("utf-8", "replace")
    return Failed(code, message.decode("utf-8", "replace"), ends_session=ends_session, constraint=constraint)
