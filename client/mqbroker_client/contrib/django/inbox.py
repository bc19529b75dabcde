"""`exactly_once` for Django: a handler's writes, its `send` and the inbox's row are one transaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from uuid import UUID

from django.db import close_old_connections, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.barrier.inbox import rows
from mqbroker_client.contrib.django.apps import config
from mqbroker_client.contrib.django.sessions import DjangoSessions
from mqbroker_client.core.handlers import Handler, require_run
from mqbroker_client.core.messages import Delivery


def exactly_once(group: str) -> Callable[[Handler], Handler]:
    """Runs a handler once for each message of a consumer group, in a transaction of MQBROKER's DATABASE.

    A call raises OutsideTransaction where the database's AUTOCOMMIT is off.
    """

    def decorate(handle: Handler) -> Handler:
        @wraps(handle)
        def handle_once(delivery: Delivery) -> object:
            with claimed(group, delivery.message.message_id) as is_new:
                if not is_new:
                    return None
                result = handle(delivery)
                require_run(result, "give a plain function")
                return result

        return closing_connections(handle_once)

    return decorate


@contextmanager
def claimed(group: str, message_id: UUID, using: str | None = None) -> Iterator[bool]:
    """A transaction with the row of this message in the inbox of a group; False: it was handled before.

    `using` is the alias of the database, by default MQBROKER's DATABASE. Raises OutsideTransaction where the database's
    AUTOCOMMIT is off.
    """
    alias = using or config().options.database
    _require_own_commit(connections[alias])
    with transaction.atomic(using=alias, durable=True):
        yield rows.claim(DjangoSessions(alias).of(connections[alias]), group, message_id)


def closing_connections(handle: Handler) -> Handler:
    """A handler that first closes broken and old database connections, because a consumer's thread lives long."""

    @wraps(handle)
    def handle_anew(delivery: Delivery) -> object:
        close_old_connections()
        try:
            return handle(delivery)
        finally:
            close_old_connections()

    return handle_anew


def purge_inbox() -> int:
    """Deletes at most 1,000 rows per database older than 14 days; returns their number. For Celery beat or cron."""
    aliases = config().options.databases
    return sum(rows.purge(DjangoSessions(alias).over(connections[alias])) for alias in aliases)


def _require_own_commit(connection: BaseDatabaseWrapper) -> None:
    # With autocommit off, `atomic` leaves the COMMIT to the program: the message would be acked without its effect.
    if not connection.in_atomic_block and not connection.get_autocommit():
        raise OutsideTransaction(
            f"exactly_once commits a transaction of its own, and AUTOCOMMIT of the database {connection.alias!r} is "
            "off, so none would be committed: give the consumer settings with AUTOCOMMIT on, which is Django's default"
        )
