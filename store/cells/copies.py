"""Copies: each cell has the rows of configuration that its statements join or lock, with the ids of the control.

A change is made at the control, then in each other cell, then committed at the control. So no process finds a row that
a cell lacks, and a change is refused while a cell is away. A delete is committed at the control first and in the cells
after that: a statement in a cell that waits for the deleted row continues when the row is gone at the control, too.
After a crash between the two commits, `repair` makes the cells equal to the control. Until then a row that only a cell
has does no harm, because no process finds its id.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.db import connections as connections_of_django
from django.db.models import Model, Q, UniqueConstraint

from store.cells import cells
from store.cells.cells import LIST_CELLS
from store.db import connections, databases, locks, patience, sealing, sync
from store.db.statements import NoRow, Statement
from store.errors import CellAway
from store.process import runtime
from store.process.runtime import CONTROL
from store.rows import CellFacts

Row = TypeVar("Row")


COPIES_LOCK = 0x6D71_6370_7900
logger = structlog.stdlib.get_logger(__name__)

# The open transactions of a `change` in other cells. They are ended after the control's transaction.
_behind: ContextVar[ExitStack | None] = ContextVar("behind_the_control", default=None)


@contextmanager
def change() -> Iterator[None]:
    """A transaction of the control for changes of the configuration. The other cells delete rows after its commit.

    A `change` within another `change` belongs to the outer transaction.
    """
    if _behind.get() is not None:
        with transaction.atomic():
            yield
        return
    with ExitStack() as behind:
        token = _behind.set(behind)
        try:
            with transaction.atomic():
                yield
        finally:
            _behind.reset(token)


def in_others(work: Callable[[], object]) -> None:
    """Calls `work` in each other cell, in a transaction that ends after the `change`. Raises CellAway."""
    # The lock is taken before any lock in a cell; a repair takes its locks in the same order.
    _read_control(locks.SHARE_LOCK, {"key": COPIES_LOCK})
    for cell in others():
        _hold(cell)
        with runtime.in_cell(cell.id):
            work()


def _hold(cell: CellFacts) -> str:
    """Opens a transaction in a cell's database, which ends after the `change`; returns Django's alias of the database.
    Raises CellAway.
    """
    behind = _behind.get()
    assert behind is not None, "what is deleted is deleted within copies.change()"
    with of_cell(cell) as database:
        if not connections_of_django[database].in_atomic_block:
            # This function is registered before the function that drops caches, which waits for other processes.
            transaction.on_commit(partial(_end, behind))
            behind.enter_context(closing(connections_of_django[database]))
            behind.enter_context(transaction.atomic(using=database))
    return database


def _end(behind: ExitStack) -> None:
    """Commits the deletes in other cells after the control's commit.

    A cell that is away keeps the rows until `repair`.
    """
    try:
        behind.close()
    except (OperationalError, InterfaceError) as problem:
        logger.warning("a cell keeps copies of what was deleted", problem=str(problem))


def write(model: type[Model], keys: Collection[Any], besides: Collection[str] = ()) -> None:
    """Copies the rows with these primary keys from the control's transaction to each cell. Deletes rows that the
    control lacks.

    Called last in the transaction of the change, from any thread; within `change` if rows may have been deleted. An
    existing row of a cell keeps the fields that each cell writes itself, except the fields in `besides`. Raises
    CellAway; then the caller rolls the transaction back.
    """
    _read_control(locks.SHARE_LOCK, {"key": COPIES_LOCK})
    theirs = others()
    if not theirs:
        return
    rows = list(model._default_manager.filter(pk__in=list(keys)))
    gone = set(keys).difference(row.pk for row in rows)
    for cell in theirs:
        if gone:
            _hold(cell)
        with of_cell(cell) as database:
            put(database, rows, {*configured(model), *besides})
            if gone:
                model._default_manager.using(database).filter(pk__in=list(gone)).delete()


async def first_use(
    statement: Statement[NoRow], parameters: Mapping[str, Any], model: type[Model], **found_by: Any
) -> None:
    """Creates a topic or group at its first use: executes the statement at the control, and copies the rows that match
    `found_by` to the other cells.

    Raises SystemBusy as `connections.read` does, or CellAway; then nothing was created.
    """
    # Another process may just have added a cell, which also needs the copies.
    await cells.learn()
    if not runtime.placement.several:
        await connections.read_control(statement, parameters)
    else:
        await asyncio.to_thread(_create, statement, parameters, model, found_by)


def _create(
    statement: Statement[NoRow], parameters: Mapping[str, Any], model: type[Model], found_by: Mapping[str, Any]
) -> None:
    try:
        # The commit gets its own time limit, because it does not store the request's messages.
        with patience.of(patience.REQUEST_SECONDS), transaction.atomic():
            sync.write(statement, parameters)
            write(model, list(model._default_manager.filter(**found_by).values_list("pk", flat=True)))
    except (OperationalError, InterfaceError) as problem:
        raise connections.away(problem) from problem
    finally:
        sync.give_connection_back()


def others() -> Sequence[CellFacts]:
    """All cells of the installation except the control."""
    return [cell for cell in _read_control(LIST_CELLS) if cell.id != CONTROL]


def _read_control(statement: Statement[Row], parameters: Mapping[str, Any] | None = None) -> Sequence[Row]:
    """The rows of a statement at the control, also when the context works for another cell."""
    with nullcontext() if runtime.chosen() is None else runtime.in_cell(CONTROL):
        return sync.read(statement, parameters)


def of_cell(cell: CellFacts) -> AbstractContextManager[str]:
    """A context that gives Django's alias of a cell's database, for a short block. Raises CellAway."""
    return databases.answering(alias(cell), cell.name)


def alias(cell: CellFacts) -> str:
    """Django's alias of a cell's database. Raises CellAway if this process has no key for the URL of the cell."""
    try:
        return databases.alias(cell.id, cell.name, sealing.opened(cell.url))
    except sealing.SecretUnreadable as problem:
        raise CellAway(f"The cell {cell.name} cannot be reached: {problem}.") from None


def hold() -> None:
    """Waits for other changes of the configuration, and keeps later changes waiting until the transaction ends."""
    _read_control(locks.TAKE_LOCKS, {"keys": [COPIES_LOCK]})


def configured(model: type[Model]) -> list[str]:
    """The fields that are equal in all cells, without the primary key. The other fields each cell writes itself."""
    own = getattr(model, "of_each_cell", ())
    return [field.name for field in model._meta.concrete_fields if field.name not in (*own, *_key(model))]


def put(alias: str, rows: Sequence[Model], fields: Collection[str]) -> None:
    """Inserts rows into a cell's database. If a row exists already, sets only its `fields`."""
    if not rows:
        return
    try:
        with transaction.atomic(using=alias):
            _put(alias, rows, fields)
    except IntegrityError:
        # A row with the same name can exist because of a change that was never committed at the control.
        with transaction.atomic(using=alias):
            for row in rows:
                _rivals(alias, row).delete()
            _put(alias, rows, fields)


def _put(alias: str, rows: Sequence[Model], fields: Collection[str]) -> None:
    model = type(rows[0])
    model._default_manager.using(alias).bulk_create(
        rows, update_conflicts=True, unique_fields=_key(model), update_fields=list(fields)
    )


def _rivals(alias: str, row: Model) -> Any:
    """Rows of the cell that conflict with this row: they have the same unique value but another primary key."""
    unique = [[field.name] for field in row._meta.concrete_fields if field.unique and not field.primary_key]
    unique += [list(each.fields) for each in row._meta.constraints if isinstance(each, UniqueConstraint)]
    alike = Q()
    for names in unique:
        alike |= Q(**{name: getattr(row, name) for name in names})
    return type(row)._default_manager.using(alias).filter(alike).exclude(pk=row.pk)


def _key(model: type[Model]) -> list[str]:
    """The names of the columns of a model's primary key."""
    return [field.name for field in model._meta.pk_fields]
