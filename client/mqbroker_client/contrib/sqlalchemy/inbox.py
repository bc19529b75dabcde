"""`exactly_once` for SQLAlchemy: the handler's writes, its `send` and the inbox's row are one transaction."""

from collections.abc import Awaitable, Callable
from functools import wraps

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from sqlalchemy.orm import Session, sessionmaker

from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.barrier.inbox import rows
from mqbroker_client.contrib.sqlalchemy.sessions import ConnectionSession, require_transaction
from mqbroker_client.core.handlers import require_run
from mqbroker_client.core.messages import Delivery

SessionHandler = Callable[[Delivery, Session], object]
AsyncSessionHandler = Callable[[Delivery, AsyncSession], Awaitable[object]]


def exactly_once(
    group: str, sessions: sessionmaker[Session]
) -> Callable[[SessionHandler], Callable[[Delivery], object]]:
    """Runs a handler once for each message of a consumer group, in a session that commits when the handler returns.

    A call raises OutsideTransaction if the session's engine is in autocommit mode, or if its connection is in a
    transaction that ends later.
    """

    def decorate(handle: SessionHandler) -> Callable[[Delivery], object]:
        @wraps(handle)
        def handle_once(delivery: Delivery) -> object:
            with sessions.begin() as session:
                _require_own_transaction(session)
                if not _claim(session.connection(), group, delivery):
                    return None
                result = handle(delivery, session)
                require_run(result, "give a plain function, or decorate it by exactly_once_async")
                return result

        return handle_once

    return decorate


def exactly_once_async(
    group: str, sessions: async_sessionmaker[AsyncSession]
) -> Callable[[AsyncSessionHandler], Callable[[Delivery], Awaitable[object]]]:
    """`exactly_once` for coroutine functions, which `AsyncConsumer.run` calls."""

    def decorate(handle: AsyncSessionHandler) -> Callable[[Delivery], Awaitable[object]]:
        @wraps(handle)
        async def handle_once(delivery: Delivery) -> object:
            async with sessions.begin() as session:
                _require_own_transaction(session.sync_session)
                connection = await session.connection()
                if not await connection.run_sync(_claim, group, delivery):
                    return None
                return await handle(delivery, session)

        return handle_once

    return decorate


def create_inbox(connection: Connection) -> None:
    """Creates the table `mqbroker_inbox`, for a migration."""
    rows.create(ConnectionSession(connection))


def purge_inbox(connection: Connection) -> int:
    """Deletes at most 1,000 rows older than 14 days. Returns their number."""
    return rows.purge(ConnectionSession(connection))


def _require_own_transaction(session: Session) -> None:
    bind = session.get_bind()
    if isinstance(bind, Connection) and bind.in_transaction():
        raise OutsideTransaction(
            "the session's connection is in a transaction that exactly_once does not commit, so the message would be "
            "acked before its effect is kept: bind the sessions to an engine"
        )


def _claim(connection: Connection, group: str, delivery: Delivery) -> bool:
    require_transaction(connection)
    return rows.claim(ConnectionSession(connection), group, delivery.message.message_id)
