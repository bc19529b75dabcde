"""Handles each message exactly once: its row in the inbox commits together with the handler's writes, or not at all."""

from collections.abc import Callable
from contextlib import closing, suppress
from functools import wraps

from mqbroker_client.barrier.inbox import rows
from mqbroker_client.barrier.sessions import Connection, DriverSessions
from mqbroker_client.core.handlers import require_run
from mqbroker_client.core.messages import Delivery

#: A handler of a delivery, which uses the transaction of a connection but neither commits nor closes it.
ConnectionHandler = Callable[[Delivery, Connection], object]
Decorated = Callable[[Delivery], object]


class Inbox:
    """The inbox of a consumer group, in the database to which `connect` opens connections.

    These drivers are supported: psycopg, psycopg2, PyMySQL, mysqlclient, MySQL's and MariaDB's connectors, and sqlite3.
    No connection may be in autocommit mode. `mqbroker_client.contrib.django` and `mqbroker_client.contrib.sqlalchemy`
    have their own `exactly_once`.
    """

    def __init__(self, group: str, connect: Callable[[], Connection]) -> None:
        self.group = group
        self._connect = connect
        self._sessions = DriverSessions(connect)

    def create_table(self) -> None:
        """Creates `mqbroker_inbox` if it does not exist."""
        with closing(self._connect()) as connection:
            rows.create(self._sessions.over(connection))
            connection.commit()

    def exactly_once(self, handle: ConnectionHandler) -> Decorated:
        """A handler of one delivery: `handle` runs once, in a transaction that is committed when it returns.

        Effects outside of this transaction may happen more than once. A call raises OutsideTransaction if `connect`
        returns a connection in autocommit mode.
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
                    # The connection may be lost: the caller gets the error that broke the connection, not an error of
                    # this rollback.
                    with suppress(Exception):
                        connection.rollback()
                    raise
                return result

        return handle_once

    def purge(self) -> int:
        """Deletes at most 1,000 rows older than 14 days; returns their number. For a regular call."""
        with closing(self._connect()) as connection:
            deleted = rows.purge(self._sessions.over(connection))
            connection.commit()
        return deleted
