"""What a database has and another cell works at, since topics have left it: deleted before anything comes of it."""

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
from delivery.receipts.purges import PURGE_RECEIPTS
from scheduling.purges import PURGE_TIMERS
from store import registry as topic_registry
from store.cells.sides import Side
from store.db import fences
from store.models import Cell, Topic
from transactions.operations.purges import PURGE_HALVES

MAX_TIMERS = 5_000
FIRST = (datetime.min.replace(tzinfo=UTC), UUID(int=0))
# What the control alone has, and what must not be read in another cell. The audit stays: PostgreSQL refuses its change.
OF_CONTROL: Sequence[type[Model]] = (ApiKey, Move, Cell, Session)


def of_fence(side: Side, topics: Sequence[int]) -> None:
    """Within a fence: the half messages and deliveries of topics that are another cell's."""
    side.one(PURGE_HALVES, topics=list(topics))
    side.one(PURGE_RECEIPTS, topics=list(topics))


def of_timers(side: Side) -> int:
    """Behind a move, beside the running broker: timers of the other side, those that are due next first.

    A release that meets one drops it, too. Returns how many were deleted. Raises CellAway.
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


def of_configuration(side: Side) -> None:
    """In a cell that was split off the control: the tables that only the control has."""
    tables = [model._meta.db_table for model in (*OF_CONTROL, get_user_model())]
    side.change(SQL("TRUNCATE {} CASCADE").format(SQL(", ").join(map(Identifier, tables))))


def of_broker() -> list[int]:
    """The ids of the broker's own topics: of what was received from these the source keeps the deliveries."""
    users = topic_registry.of_users().values("id")
    return list(Topic.objects.exclude(id__in=users).values_list("id", flat=True))


def write_behind_the_fence() -> None:
    """Has Django's connection of this process to the control be one of the run: a fence of the control stops neither
    what it writes nor its session."""
    options = connection.settings_dict["OPTIONS"]
    if options["application_name"] != fences.MOVER:
        options["application_name"] = fences.MOVER
        options["options"] = f"{options['options']} -c default_transaction_read_only=off"
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # the stubs know no pool


def own_session() -> int:
    """The process of the server that Django's connection of this run has at the control."""
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)
