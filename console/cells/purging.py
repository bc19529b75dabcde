"""Deletes rows of topics that have left a database: the new cell has these rows, and the copies must have no effect."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Model
from psycopg.sql import SQL, Identifier

from access.models import ApiKey
from console.cells.models import Move
from delivery.receipts.purges import MARK_LEFT_LETTERS, PURGE_RECEIPTS
from scheduling.purges import PURGE_TIMERS
from store import registry as topic_registry
from store.cells.sides import Side
from store.db import fences
from store.models import Cell, Topic
from store.naming.topics import DEAD_LETTER_PREFIX
from transactions.operations.purges import PURGE_HALVES

MAX_TIMERS = 5_000
FIRST = (datetime.min.replace(tzinfo=UTC), UUID(int=0))
# Tables that only the control may have, because of their secrets. The audit stays: PostgreSQL refuses its change.
OF_CONTROL: Sequence[type[Model]] = (ApiKey, Move, Cell, Session)


def of_fence(side: Side, topics: Sequence[int]) -> None:
    """Deletes, within a fence, the half messages and deliveries of topics of another cell."""
    side.one(PURGE_HALVES, topics=list(topics))
    side.one(PURGE_RECEIPTS, topics=list(topics))


def of_timers(side: Side) -> int:
    """Deletes timers of the other side's topics, after a move and while the broker runs, the next due first.

    A release also drops these timers. Returns the number of deleted timers. Raises CellAway.
    """
    gone = side.look()
    due_at, after = FIRST
    deleted = 0
    while rows := side.ask(
        PURGE_TIMERS, due_at=due_at, id=after, max_timers=MAX_TIMERS, topics=gone.departed, queues=gone.departed_queues
    ):
        [row] = rows
        due_at, after, deleted = row.due_at, row.id, deleted + row.purged
    return deleted


def of_letters(side: Side) -> int:
    """Leaves the other side's dead letters out of counts, after a move and while the broker runs.

    Returns the number of these letters. Raises CellAway.
    """
    return side.one(MARK_LEFT_LETTERS, prefix=DEAD_LETTER_PREFIX, topics=side.look().departed)


def of_configuration(side: Side) -> None:
    """Empties tables that only the control may have, in a cell that was split off the control."""
    tables = [model._meta.db_table for model in (*OF_CONTROL, get_user_model())]
    side.change(SQL("TRUNCATE {} CASCADE").format(SQL(", ").join(map(Identifier, tables))))


def of_broker() -> list[int]:
    """The ids of the broker's own topics. The source keeps deliveries that were received from these topics."""
    users = topic_registry.of_users().values("id")
    return list(Topic.objects.exclude(id__in=users).values_list("id", flat=True))


def write_behind_the_fence() -> None:
    """Marks Django's connection of this process to the control as a session of the move, so that a fence of the control
    neither stops its writes nor ends it.
    """
    options = connection.settings_dict["OPTIONS"]
    if options["application_name"] != fences.MOVER:
        options["application_name"] = fences.MOVER
        options["options"] = f"{options['options']} -c default_transaction_read_only=off"
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # the stubs know no pool


def own_session() -> int:
    """The process id, at the control's server, of this run's Django connection."""
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)
