"""Opens sessions at a source, the database of an outbox."""

import asyncio

from psycopg import sql

from store.db import patience
from store.db.patience import PatientAsyncConnection
from store.errors import MessageIllegal, SystemBusy
from store.process import runtime
from transactions.outboxes import places

# The time to connect to one address, and to all addresses of the hosts.
CONNECT_SECONDS = 5
CONNECT_ALL_SECONDS = 20
# The limit is longer than the statement time-out, which a working source enforces itself.
ANSWER_SECONDS = 15
# The version since which a role may have a time-out for idle sessions. The broker's session is idle between two steps.
IDLE_TIMEOUT_SINCE, NO_IDLE_TIMEOUT = 140000, sql.SQL("SET idle_session_timeout = 0")
# Encodings that PostgreSQL cannot convert to UTF-8, so their texts cannot be read.
UNREADABLE = {"SQL_ASCII", "MULE_INTERNAL"}


class SourceUnreadable(MessageIllegal):
    """The broker cannot work with this source, or with the data that it sends."""


class SourceLocked(SystemBusy):
    """Another session locks a table of the outbox."""


async def connect(url: str, application: str) -> PatientAsyncConnection:
    """A new connection in autocommit; the caller closes it.

    The start of the session has no options, which a pooler refuses, and the environment is not used. psycopg prepares
    no statement, because a pooler would drop it. Raises psycopg's OperationalError, SourceUnreadable for an encoding
    that cannot be converted to UTF-8, and the errors of `places`.
    """
    opens = runtime.current().connects or PatientAsyncConnection.connect
    try:
        async with asyncio.timeout(CONNECT_ALL_SECONDS):
            connection: PatientAsyncConnection = await opens(
                await places.reachable(places.read(url)),
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=CONNECT_SECONDS,
                application_name=application,
                options="",
                keepalives_idle=10,
                tcp_user_timeout=ANSWER_SECONDS * 1000,
            )
    except TimeoutError:
        raise SourceUnreadable(f"The source accepted no connection within {CONNECT_ALL_SECONDS} s.") from None
    try:
        _require_readable(connection.info.parameter_status("server_encoding"))
        if connection.info.server_version >= IDLE_TIMEOUT_SINCE:
            # The wait has its own limit: a silent source must not use up the time that a request has for the broker's
            # own database.
            with patience.of(ANSWER_SECONDS):
                await connection.execute(NO_IDLE_TIMEOUT)
    except BaseException:
        await connection.close()
        raise
    return connection


def _require_readable(encoding: str | None) -> None:
    if encoding in UNREADABLE:
        raise SourceUnreadable(
            f"The encoding of the database is {encoding}, which PostgreSQL cannot convert to UTF-8: "
            "move the outbox to a database with the encoding UTF8."
        )
