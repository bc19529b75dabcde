"""How a transaction of a pipeline ends that has no answers: rolled back, never begun, or unknown."""

from psycopg import pq
from psycopg.pq.abc import PGresult

# The constraint that refuses messages of topics which have left a cell.
GUARD = "topic_has_gone"


class Failed(Exception):
    """The transaction was rolled back; `code` is PostgreSQL's SQLSTATE. It may have ended the session, too.

    `constraint` is the name of the one that was broken.
    """

    def __init__(self, code: str, message: str, *, ends_session: bool = False, constraint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.ends_session = ends_session
        self.constraint = constraint


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
