"""Handling each message exactly once: its row in the inbox commits with what the handler does, or not at all."""

from collections.abc import Callable
from contextlib import closing, suppress
from functools import wraps

from mqbroker_client.barrier.inbox import rows
from mqbroker_client.barrier.sessions import Connection, DriverSessions
from mqbroker_client.core.handlers import require_run
from mqbroker_client.core.messages import Delivery

#: Works on a delivery in the transaction of a connection, which it neither commits nor closes.
ConnectionHandler = Callable[[Delivery, Connection], object]
Decorated = Callable[[Delivery], object]


class Inbox:
    """The inbox of a consumer group, in the database that `connect` opens connections to.

    Connections are those of psycopg, psycopg2, PyMySQL, mysqlclient, MySQL's and MariaDB's connectors, and sqlite3,
    none of them in autocommit mode. `mqbroker_client.contrib.django` and `mqbroker_client.contrib.sqlalchemy` have an
    `exactly_once` of their own.
    """

    def __init__(self, group: str, connect: Callable[[], Connection]) -> None:
        self.group = group
        self._connect = connect
        self._sessions = DriverSessions(connect)

    def create_table(self) -> None:
        """Makes `mqbroker_inbox`, unless it is there."""
        with closing(self._connect()) as connection:
            rows.create(self._sessions.over(connection))
            connection.commit()

    def exactly_once(self, handle: ConnectionHandler) -> Decorated:
        """A handler of one delivery: `handle` runs once, in a transaction that is committed when it returns.

        What it does in another place than this transaction may happen more than once. A call raises OutsideTransaction
        where `connect` gives a connection in autocommit mode.
        """

        @wraps(handle)
        def handle_once(delivery: Delivery) -> object:
            with closing(self._connect()) as connection:
                session = self._sessions.of(connection)
                try:
                    if not rows.claim(session, self.group, delivery.message.message_id):
                        connection.rollback()
                        return None
                    result = handle(delivery, connection)
                    require_run(result, "give a plain function")
                    connection.commit()
                except BaseException:
                    # Of a connection that was lost: what broke it is the error that is raised.
                    with suppress(Exception):
                        connection.rollback()
                    raise
                return result

        return handle_once

    def purge(self) -> int:
        """Deletes rows older than 14 days, at most 1,000; how many. For a regular job."""
        with closing(self._connect()) as connection:
            deleted = rows.purge(self._sessions.over(connection))
            connection.commit()
        return deleted
