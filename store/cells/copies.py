"""Copies: each cell has the rows of configuration that its statements join or lock, under the ids of the control.

A change is made at the control, then in each other cell, then committed at the control. So no process finds a row that
a cell lacks, and a cell that is away has the change refused. A delete is committed in the cells behind the control:
what meets it in a cell waits there, and then finds it at the control, too. What a crash in between leaves in some of
the cells only, `repair` mends; a row in a cell that the control does not have is in no process's way meanwhile, for
none finds its id.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.db import connections as connections_of_django
from django.db.models import Model, Q, UniqueConstraint

from store.cells import cells
from store.cells.cells import LIST_CELLS, CellFacts
from store.db import connections, databases, patience, sealing, sync
from store.db.statements import NoRow, Statement
from store.errors import CellAway
from store.process import runtime
from store.process.runtime import CONTROL

Row = TypeVar("Row")


class SharedCopies(NamedTuple):
    """The lock of the copies is shared."""

    pg_advisory_xact_lock_shared: None


class HeldCopies(NamedTuple):
    """The lock of the copies is held."""

    pg_advisory_xact_lock: None


SHARE_COPIES = Statement(__file__, "share_copies", SharedCopies)
HOLD_COPIES = Statement(__file__, "hold_copies", HeldCopies)
COPIES_LOCK = 0x6D71_6370_7900
logger = structlog.stdlib.get_logger(__name__)

# Of a `change`: transactions in the cells, which end behind that of the control.
_behind: ContextVar[ExitStack | None] = ContextVar("behind_the_control", default=None)


@contextmanager
def change() -> Iterator[None]:
    """A transaction of the control for changes of the configuration; what it deletes is gone from the cells behind it.

    Within another such block it is a part of that.
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
    """Does a work of the `change` in each other cell, in a transaction there that ends behind it. Raises CellAway."""
    # Before any lock in a cell: a repair takes them in this order.
    _read_control(SHARE_COPIES, {"key": COPIES_LOCK})
    for cell in others():
        _hold(cell)
        with runtime.in_cell(cell.id):
            work()


def _hold(cell: CellFacts) -> str:
    """Django's alias of a cell's database, in a transaction that ends behind the `change`. Raises CellAway."""
    behind = _behind.get()
    assert behind is not None, "what is deleted is deleted within copies.change()"
    with of_cell(cell) as database:
        if not connections_of_django[database].in_atomic_block:
            # Before the caches are dropped, which waits for other processes.
            transaction.on_commit(partial(_end, behind))
            behind.enter_context(closing(connections_of_django[database]))
            behind.enter_context(transaction.atomic(using=database))
    return database


def _end(behind: ExitStack) -> None:
    """Commits what was deleted in the cells, now that the control has; one that is away keeps it until a `repair`."""
    try:
        behind.close()
    except (OperationalError, InterfaceError) as problem:
        logger.warning("a cell keeps copies of what was deleted", problem=str(problem))


def write(model: type[Model], keys: Collection[Any], besides: Collection[str] = ()) -> None:
    """Makes the rows of these primary keys in each cell what they are in this transaction of the control; gone if gone.

    Called last in the transaction of the change, from any thread; within `change` where rows may be gone. Of a row that
    a cell has already the fields that are each cell's own stay as they are there, but for those in `besides`. Raises
    CellAway: the transaction is then to be rolled back.
    """
    _read_control(SHARE_COPIES, {"key": COPIES_LOCK})
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
    """Executes the statement of a first use at the control, and copies the rows that it may have made or changed.

    Raises SystemBusy as `connections.read` does, or CellAway; then nothing was made.
    """
    # Not by what this process knew: a cell may just have been added.
    await cells.learn()
    if not runtime.several:
        await connections.read_control(statement, parameters)
    else:
        await asyncio.to_thread(_create, statement, parameters, model, found_by)


def _create(
    statement: Statement[NoRow], parameters: Mapping[str, Any], model: type[Model], found_by: Mapping[str, Any]
) -> None:
    try:
        # Its commit is not that of the request, of which nothing is stored yet.
        with patience.of(patience.REQUEST_SECONDS), transaction.atomic():
            sync.write(statement, parameters)
            write(model, list(model._default_manager.filter(**found_by).values_list("pk", flat=True)))
    except (OperationalError, InterfaceError) as problem:
        raise connections.away(problem) from problem
    finally:
        sync.give_connection_back()


def others() -> Sequence[CellFacts]:
    """The cells besides the control."""
    return [cell for cell in _read_control(LIST_CELLS) if cell.id != CONTROL]


def _read_control(statement: Statement[Row], parameters: Mapping[str, Any] | None = None) -> Sequence[Row]:
    """The work may be that of a cell, such as a receive: that cell knows of no others."""
    with nullcontext() if runtime.chosen() is None else runtime.in_cell(CONTROL):
        return sync.read(statement, parameters)


def of_cell(cell: CellFacts) -> AbstractContextManager[str]:
    """A short block with Django's alias of a cell's database. Raises CellAway."""
    return databases.answering(alias(cell), cell.name)


def alias(cell: CellFacts) -> str:
    """Django's alias of a cell's database. Raises CellAway where this process has no key for its URL."""
    try:
        return databases.alias(cell.id, cell.name, sealing.opened(cell.url))
    except sealing.SecretUnreadable as problem:
        raise CellAway(f"The cell {cell.name} cannot be reached: {problem}.") from None


def hold() -> None:
    """Until the end of the transaction no other one changes the configuration; those under way have ended."""
    _read_control(HOLD_COPIES, {"key": COPIES_LOCK})


def configured(model: type[Model]) -> list[str]:
    """The fields of a row that all cells have alike, besides its primary key; others each cell writes itself."""
    own = getattr(model, "of_each_cell", ())
    return [field.name for field in model._meta.concrete_fields if field.name not in (*own, *_key(model))]


def put(alias: str, rows: Sequence[Model], fields: Collection[str]) -> None:
    """Writes rows into a cell's database, where they may be already; of these only the fields."""
    if not rows:
        return
    try:
        with transaction.atomic(using=alias):
            _put(alias, rows, fields)
    except IntegrityError:
        # What a change left that was never committed at the control has the name of one of these.
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
    """Rows of the cell with another primary key that have what is unique of this one."""
    unique = [[field.name] for field in row._meta.concrete_fields if field.unique and not field.primary_key]
    unique += [list(each.fields) for each in row._meta.constraints if isinstance(each, UniqueConstraint)]
    alike = Q()
    for names in unique:
        alike |= Q(**{name: getattr(row, name) for name in names})
    return type(row)._default_manager.using(alias).filter(alike).exclude(pk=row.pk)


def _key(model: type[Model]) -> list[str]:
    """The names of the columns of a model's primary key."""
    return [field.name for field in model._meta.pk_fields]
