"""The cells of the installation: the control's list, the cells that a process serves, and how each is asked."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

import structlog

from store.cells.asking import Asking
from store.db import connections, databases, guards, sealing, sync
from store.db.statements import Statement
from store.db.ttl_cache import Key, TtlCache, Value
from store.errors import CellAway, SystemBusy
from store.process import runtime
from store.process.runtime import CONTROL, Runtime
from store.rows import CellFacts

Result = TypeVar("Result")

logger = structlog.stdlib.get_logger(__name__)

# The names of the cells that reads in this context have left out because they are away. None: a cell that is away makes
# the read fail.
_missing: ContextVar[list[str] | None] = ContextVar("missing", default=None)
# Whether this context works for one cell alone.
_in_one: ContextVar[bool] = ContextVar("in_one", default=False)


# The process reads the list from the control, like all configuration.
LIST_CELLS = Statement(__file__, "list_cells", CellFacts)

# This time is so short that a look-up ends before the cached value expires.
CONTROL_SECONDS = 0.4
# How long `ask` waits for the answer of a cell, the wait for a free thread included.
ASKED_SECONDS = 5.0
# The time is longer than a failover of the control. A process that is cut off from the control may accept a revoked key
# for this time.
BELIEVED_SECONDS = 900.0
# The least time between two reads of the list: in an installation with one cell, and with several.
ANEW_SECONDS, AMONG_SEVERAL_SECONDS = 10.0, 1.0


class Learnt:
    """The cells in the list, and when this process last read the list, by the monotonic clock."""

    def __init__(self) -> None:
        self.at = -ANEW_SECONDS
        self.found: Sequence[CellFacts] = ()


async def learn_anew() -> None:
    """Calls `learn`, unless the last call was less than ANEW_SECONDS ago; with several cells AMONG_SEVERAL_SECONDS."""
    least = AMONG_SEVERAL_SECONDS if runtime.placement.several else ANEW_SECONDS
    if time.monotonic() - runtime.control(Learnt).at >= least:
        await learn()


async def learn() -> None:
    """Makes this process serve exactly the cells in the control's list. Raises SystemBusy while the control is away."""
    _serve(await connections.read_control(LIST_CELLS))


def learn_once() -> None:
    """Reads the list like `learn`, on Django's connection without an event loop. Raises Django's OperationalError."""
    _serve(sync.read(LIST_CELLS))


def _serve(found: Sequence[CellFacts]) -> None:
    learnt = runtime.control(Learnt)
    learnt.at = time.monotonic()
    guards.require_own_sessions(len(found))
    if found == learnt.found:
        return  # decrypting the URLs of ten cells took a third of their cost in an idle process
    served = runtime.current().cells
    for facts in found:
        try:
            url = sealing.opened(facts.url)
        except sealing.SecretUnreadable as problem:
            logger.error("a cell cannot be reached", cell=facts.name, problem=str(problem))
            continue
        if facts.id not in served or (facts.id != CONTROL and served[facts.id].url != url):
            runtime.current().add(Runtime(facts.id, facts.name, url, facts.parent_id))
    for gone in served.keys() - {CONTROL, *(facts.id for facts in found)}:
        runtime.current().remove(gone)
    learnt.found = found


async def or_last(
    cache: TtlCache[Key, Value], key: Key, look_up: Callable[[], Awaitable[Value | None]]
) -> Value | None:
    """Looks a value of the configuration up. While the control is away, returns the value of the last look-up.

    If the control is away for all processes, the configuration cannot have changed, and the other cells keep working.
    But this process alone may be cut off while another process revokes a key. So a value that was found more than
    BELIEVED_SECONDS ago is not used, and the refusal of the look-up is raised.
    """
    last = cache.last(key, BELIEVED_SECONDS)
    if last is None or not runtime.placement.several:
        return await look_up()
    try:
        async with asyncio.timeout(CONTROL_SECONDS):
            return await look_up()
    except (SystemBusy, TimeoutError):
        return last


async def in_each(work: Callable[[], Awaitable[object]]) -> None:
    """Runs `work` in all cells at the same time. A cell that is away does not stop the others.

    After all have ended, raises an exception that `work` raised in one of the cells.
    """
    with contextlib.suppress(SystemBusy):
        # If the control is away, the process continues to serve the cells that it knows.
        await learn_anew()
    await runtime.placement.everywhere(work)


def each(work: Callable[[], Result]) -> list[Result]:
    """The result of `work`, which reads by `sync.read` or the ORM, in each cell, the control first. Raises CellAway."""
    return [_at(cell, work) for cell in runtime.cells()]


def ask(work: Callable[[], Result], only: Container[int] | None = None) -> dict[int, Result]:
    """The result of the synchronous `work` in each cell, or in the cells of `only`, by cell id; the control first.

    All cells are asked at the same time. A call of `ask` within `work` asks only the cell of that `work`. Raises the
    exceptions that `work` raises in the control, and CellAway for a cell that does not answer, unless a block of
    `leaving_out` is open.
    """
    if _in_one.get():
        here = runtime.here().cell
        return {here: work()} if only is None or here in only else {}
    asked = [cell for cell in runtime.cells() if (only is None or cell.cell in only) and cell.name not in missing()]
    others = [cell for cell in asked if cell.cell != CONTROL]
    if not others:
        return {cell.cell: at(cell.cell, work) for cell in asked}
    answers = {cell: cell.part(Asking).begin(partial(_apart, cell.cell, work)) for cell in others}
    found = {cell.cell: at(cell.cell, work) for cell in asked if cell.cell == CONTROL}
    for cell, answer in answers.items():
        try:
            found[cell.cell] = _answer(cell, answer)
        except CellAway:
            if _missing.get() is None:
                raise
            leave_out([cell.name])
    return found


def ask_others(work: Callable[[], Result]) -> dict[int, Result]:
    """The results of `ask` in each cell except the control, whose rows the caller has read."""
    return ask(work, only={cell.cell for cell in runtime.cells()} - {CONTROL})


def _answer(cell: Runtime, answer: Future[Result]) -> Result:
    try:
        return answer.result(ASKED_SECONDS)
    except TimeoutError as problem:
        answer.cancel()
        raise CellAway(f"The cell {cell.name} is away: other requests already wait for its answer.") from problem


def together(
    found: Collection[Sequence[Result]],
    key: Callable[[Result], object],
    add: Callable[[Result, Result], Result],
    size: Callable[[Result], int],
) -> Sequence[Result]:
    """The rows of several cells; rows with the same key are added up to one row. The largest row is first.

    Rows of a single cell are unchanged.
    """
    if len(found) == 1:
        return next(iter(found))
    sums: dict[object, Result] = {}
    for row in (row for rows in found for row in rows):
        sums[key(row)] = add(sums[key(row)], row) if key(row) in sums else row
    return sorted(sums.values(), key=size, reverse=True)


@contextlib.contextmanager
def leaving_out() -> Iterator[list[str]]:
    """Within the block, cells that do not answer are left out. The list gets their names, which the answer must show.

    A cell that did not answer is not asked again within the block.
    """
    names = missing()
    token = _missing.set(names)
    try:
        yield names
    finally:
        _missing.reset(token)
        leave_out(names)


def leave_out(names: Iterable[str]) -> None:
    """Adds the names of cells that were left out to the list of the enclosing block."""
    listed = _missing.get()
    if listed is not None:
        listed += [name for name in names if name not in listed]


def missing() -> list[str]:
    """The names of the cells that the enclosing block has left out so far."""
    return list(_missing.get() or ())


def at(cell: int, work: Callable[[], Result]) -> Result:
    """The result of the synchronous `work` in one cell. Raises CellAway if a cell other than the control is away."""
    return _at(runtime.of(cell), work)


def _at(cell: Runtime, work: Callable[[], Result]) -> Result:
    token = _in_one.set(True)
    try:
        with cell.entered(), _answering(cell):
            return work()
    finally:
        _in_one.reset(token)


def _apart(cell: int, work: Callable[[], Result]) -> Result:
    """Works like `at`, but in a thread of a pool, whose database connection it returns at the end."""
    try:
        return at(cell, work)
    finally:
        sync.give_connection_back()


def _answering(cell: Runtime) -> contextlib.AbstractContextManager[object]:
    """A context that raises CellAway for failures of a cell's database; it does nothing for the control."""
    return databases.answering(databases.here(), cell.name) if cell.url else contextlib.nullcontext()
