"""The cells of the installation, as the control lists them and a process serves them."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from typing import NamedTuple, TypeVar

import structlog

from store.cells.asking import Asking
from store.db import connections, databases, guards, sealing, sync
from store.db.statements import Statement
from store.db.ttl_cache import Key, TtlCache, Value
from store.errors import CellAway, SystemBusy
from store.process import runtime
from store.process.runtime import CONTROL, Runtime

Result = TypeVar("Result")

logger = structlog.stdlib.get_logger(__name__)

# The names of the cells that the work of this context has left out; None: it leaves none out.
_missing: ContextVar[list[str] | None] = ContextVar("missing", default=None)
# Whether the work of this context is that of one cell alone.
_in_one: ContextVar[bool] = ContextVar("in_one", default=False)


class CellFacts(NamedTuple):
    """A cell as processes need it. `url` is as it is stored: `sealing.opened` gives libpq's."""

    id: int
    name: str
    url: str
    takes_topics: bool
    parent_id: int | None


# It, and all configuration, is read from the control.
LIST_CELLS = Statement(__file__, "list_cells", CellFacts)

# Less than what is left of a cached value when it is looked up again.
CONTROL_SECONDS = 0.4
# How long a work waits for its turn at a cell, and its answer.
ASKED_SECONDS = 5.0
# Longer than a failover of the control takes. For so long a process that is cut off from it may accept a revoked key.
BELIEVED_SECONDS = 900.0
# A process that meets no topic of a new cell serves it after this: of one cell, and of several, whose topics may move.
ANEW_SECONDS, AMONG_SEVERAL_SECONDS = 10.0, 1.0


class Learnt:
    """When this process has last asked which cells there are, by the monotonic clock, and what it has served since."""

    def __init__(self) -> None:
        self.at = -ANEW_SECONDS
        self.found: Sequence[CellFacts] = ()


async def learn_anew() -> None:
    """As `learn`, unless it did so less than ANEW_SECONDS ago, or AMONG_SEVERAL_SECONDS."""
    if time.monotonic() - runtime.control(Learnt).at >= (AMONG_SEVERAL_SECONDS if runtime.several else ANEW_SECONDS):
        await learn()


async def learn() -> None:
    """Has this process serve the cells that the control lists, and no other. Raises SystemBusy while that is away."""
    _serve(await connections.read_control(LIST_CELLS))


def learn_once() -> None:
    """As `learn`, by Django's connection, for a process without an event loop: a command. Raises as Django does."""
    _serve(sync.read(LIST_CELLS))


def _serve(found: Sequence[CellFacts]) -> None:
    learnt = runtime.control(Learnt)
    learnt.at = time.monotonic()
    guards.require_own_sessions(len(found))
    if found == learnt.found:
        return  # to open the URLs of ten cells took a third of what these cost an idle process
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
    """What a look-up finds in the configuration, or what it found last, where only the control is away.

    Then nothing of the configuration can have been changed since, and the other cells go on. But a process may be cut
    off from a control that others reach, which may have revoked a key: what was found more than
    BELIEVED_SECONDS ago is not believed any more, and the look-up's refusal is raised.
    """
    last = cache.last(key, BELIEVED_SECONDS)
    if last is None or not runtime.several:
        return await look_up()
    try:
        async with asyncio.timeout(CONTROL_SECONDS):
            return await look_up()
    except (SystemBusy, TimeoutError):
        return last


async def in_each(work: Callable[[], Awaitable[object]]) -> None:
    """Does a work in each cell, in all of them at once: one that is away does not keep it from the others.

    Raises what it raised in one of them, once it has ended in all.
    """
    with contextlib.suppress(SystemBusy):
        # Those that are known go on.
        await learn_anew()
    if not runtime.several:
        await work()
        return
    ended = await asyncio.gather(*(_in(cell, work) for cell in runtime.cells()), return_exceptions=True)
    for problem in ended:
        if problem is not None:
            raise problem


def each(work: Callable[[], Result]) -> list[Result]:
    """What a synchronous work finds in each cell by `sync.read` and the ORM, the control's first. Raises CellAway."""
    return [_at(cell, work) for cell in runtime.cells()]


def ask(work: Callable[[], Result], only: Container[int] | None = None) -> dict[int, Result]:
    """What a synchronous work finds in each cell, or `only` in some, by the cell's id; the control's first.

    They are asked at once, 2 s each; work that asks again asks its own cell. Raises what the work raises in
    the control, and CellAway for a cell that does not answer, but that a block of `leaving_out` leaves it out.
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


def _answer(cell: Runtime, answer: Future[Result]) -> Result:
    try:
        return answer.result(ASKED_SECONDS)
    except TimeoutError as problem:
        answer.cancel()
        raise CellAway(f"The cell {cell.name} is away: it is being asked too much, and has not answered.") from problem


def together(
    found: Collection[Sequence[Result]],
    key: Callable[[Result], object],
    add: Callable[[Result, Result], Result],
    size: Callable[[Result], int],
) -> Sequence[Result]:
    """The rows that several cells have found, those of one key added up, the most first; of one cell as they are."""
    if len(found) == 1:
        return next(iter(found))
    sums: dict[object, Result] = {}
    for row in (row for rows in found for row in rows):
        sums[key(row)] = add(sums[key(row)], row) if key(row) in sums else row
    return sorted(sums.values(), key=size, reverse=True)


@contextlib.contextmanager
def leaving_out() -> Iterator[list[str]]:
    """Within the block a cell that does not answer is left out, with its name in the list: the answer has to say so.

    It is asked once, and not again within the block.
    """
    names = missing()
    token = _missing.set(names)
    try:
        yield names
    finally:
        _missing.reset(token)
        leave_out(names)


def leave_out(names: Iterable[str]) -> None:
    """Names cells that were left out in the list of the block around this."""
    listed = _missing.get()
    if listed is not None:
        listed += [name for name in names if name not in listed]


def missing() -> list[str]:
    """The names of the cells that the block around this has left out so far."""
    return list(_missing.get() or ())


def at(cell: int, work: Callable[[], Result]) -> Result:
    """What a synchronous work finds in one cell; as `each`."""
    return _at(runtime.of(cell), work)


def _at(cell: Runtime, work: Callable[[], Result]) -> Result:
    token = _in_one.set(True)
    try:
        with cell.entered(), _answering(cell):
            return work()
    finally:
        _in_one.reset(token)


def _apart(cell: int, work: Callable[[], Result]) -> Result:
    """As `at`, in a thread that ends with it: what the work has read of the configuration keeps no connection."""
    try:
        return at(cell, work)
    finally:
        sync.give_connection_back()


def _answering(cell: Runtime) -> contextlib.AbstractContextManager[object]:
    """The control's connection is that of the request, which may be within a transaction."""
    return databases.answering(databases.here(), cell.name) if cell.url else contextlib.nullcontext()


async def _in(cell: Runtime, work: Callable[[], Awaitable[object]]) -> None:
    with cell.entered():
        await work()
