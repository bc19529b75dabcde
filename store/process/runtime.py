"""The runtime of a process: its state between two requests, made at its start and closed at its end.

Connections, writers, caches and background work are *parts*. No module makes one at import: the web's lifespan, the
worker's start and a test install a runtime, and each part is made at its first use there.

Each cell has a runtime of its own. What holds a connection or knows of entries, halves or timers is a part of a cell:
`part`. What knows of the configuration, or bounds the whole process, is a part of the control, cell 0: `control`. An
operation names its cell. Other work chooses it at its begin by `in_cell`, and what it begins keeps it. A task that
serves more than the work which happened to begin it is a `Runtime.task`, and what the event loop calls enters the cell
of its part.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from store.errors import CellAway, SystemBusy
from store.process.departed import Departed

Part = TypeVar("Part")

CONTROL = 0


class Runtime:
    """The parts of one cell in this process, at most one of each kind; the control's has the runtimes of all cells.

    `url` is that of the cell's database; the control's is in the settings. `parent`: that which it was split from.
    """

    def __init__(self, cell: int = CONTROL, name: str = "c0", url: str = "", parent: int | None = None) -> None:
        self.cell = cell
        self.name = name
        self.url = url
        self.parent = parent
        # What its database has and is another cell's, and why a fence stands there, as its latest session knows.
        self.departed = Departed()
        self.fence = ""
        # Set for good once it closes: work that is still under way in a thread begins nothing that outlasts it.
        self.is_closing = False
        # By their ids, this one included; of a cell that is not the control only itself.
        self.cells: dict[int, Runtime] = {cell: self}
        # What begins in each cell, ends one that is left, and tells by a session why a fence stands; of the control's.
        self.begins: Callable[[Runtime], None] | None = None
        self.ends: Callable[[Runtime], None] | None = None
        self.explain: Callable[[Any, Runtime], Awaitable[str]] | None = None
        self._parts: dict[Callable[[], Any], Any] = {}
        self._closed: set[Callable[[], Any]] = set()
        self._making = threading.RLock()

    def part(self, kind: Callable[[], Part]) -> Part:
        """The part of this kind, a class or another factory; made now if it is the first use. From any thread.

        Raises SystemBusy for a part that was closed: work that comes so late would open connections that no one closes,
        and a pool that connects to a database which is gone keeps the event loop from ending.
        """
        part: Part | None = self._parts.get(kind)
        return self._make(kind) if part is None else part

    def _make(self, kind: Callable[[], Part]) -> Part:
        with self._making:
            if kind in self._closed:
                raise ending() if _control in (None, self) or current().is_closing else self._left()
            if kind not in self._parts:
                # A part may keep the runtime that it belongs to: `here`.
                with self.entered():
                    self._parts[kind] = kind()
            part: Part = self._parts[kind]
        return part

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The work of the block, and what it begins, is this cell's."""
        token = _here.set(self)
        try:
            yield
        finally:
            _here.reset(token)

    def task(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """A task of this cell, whichever cell the work was of that needs it."""
        with self.entered():
            return asyncio.get_running_loop().create_task(work, name=name)

    def add(self, cell: "Runtime") -> None:
        """Has this process serve another cell, in place of the runtime that it has of it; of the control's runtime."""
        if self.is_closing:
            return
        self._serve({**self.cells, cell.cell: cell})
        if self.begins is not None:
            self.begins(cell)

    def remove(self, cell: int) -> None:
        """Has this process leave a cell; of the control's runtime."""
        self._serve({id_: each for id_, each in self.cells.items() if id_ != cell})

    def _serve(self, cells: "dict[int, Runtime]") -> None:
        left = [each for id_, each in self.cells.items() if cells.get(id_) is not each]
        self.cells = cells
        if _control is self:
            install(self)
        for each in left:
            if self.ends is not None:
                self.ends(each)

    def _left(self) -> CellAway:
        return CellAway(f"This process has just left the database of the cell {self.name}: try again in a second.")

    def forget(self) -> None:
        """Has the parts that have a `forget_all` drop what they have cached of the configuration. From any thread."""
        for part in [part for cell in self.cells.values() for part in list(cell._parts.values())]:
            getattr(part, "forget_all", lambda: None)()

    async def close(self, first: tuple[Callable[[], Any], ...] = ()) -> None:
        """Closes the parts that have a `close`: the kinds of `first` in their order, then the others, newest first.

        The other cells' before the control's, all of them at once. The other parts stay: work that is still under way
        in a thread goes on in the same event loop.
        """
        self.is_closing = True
        await asyncio.gather(*(cell.close(first) for cell in self.cells.values() if cell is not self))
        named = [kind for kind in first if kind in self._parts]
        for kind in [*named, *(kind for kind in reversed(list(self._parts)) if kind not in named)]:
            close = getattr(self._parts.get(kind), "close", None)
            if close is not None:
                await close()
                self._parts.pop(kind, None)
                self._closed.add(kind)


def ending() -> SystemBusy:
    """The refusal of work that comes after its runtime was closed."""
    return SystemBusy("This process is ending: nothing was stored, ask again.")


_control: Runtime | None = None
# The runtime of a process that serves one cell, where there is nothing to choose.
_only: Runtime | None = None
# The parts of that one, and of the control: both are asked several times for each request, and find what is there
# without a call.
_found: dict[Callable[[], Any], Any] = {}
_shared: dict[Callable[[], Any], Any] = {}
# Whether there are several cells, one of which has to be chosen; a name of the module's, for it is asked all the time.
several = False
# The cell that this task works for.
_here: ContextVar[Runtime | None] = ContextVar("cell", default=None)


def install(runtime: Runtime | None) -> None:
    """Makes this the control's runtime of the process, or leaves the process without one."""
    global _control, _only, _found, _shared, several
    _control, _shared = runtime, {} if runtime is None else runtime._parts
    several = runtime is not None and len(runtime.cells) > 1
    _only, _found = (None, {}) if several else (runtime, _shared)


def current() -> Runtime:
    """The control's runtime of the process, which knows those of all its cells.

    Raises RuntimeError where none is installed: a process that uses parts makes its runtime first.
    """
    if _control is None:
        raise RuntimeError("this process has no runtime: install one before it uses connections, writers or caches")
    return _control


def here() -> Runtime:
    """The runtime of the cell that this task works for.

    Raises RuntimeError in a process of several cells where the work has chosen none: any of them would be a guess.
    """
    chosen = _here.get() or _only
    if chosen is None:
        _ = current()
        raise RuntimeError("this work has chosen no cell: it begins with runtime.in_cell")
    return chosen


def of(cell: int) -> Runtime:
    """The runtime of a cell. Raises CellAway for one that this process does not know."""
    found = current().cells.get(cell)
    if found is None:
        raise CellAway(f"This process does not know cell {cell} yet: nothing was stored, try again in a second.")
    return found


def serves(cell: int) -> bool:
    """Whether this process knows the cell."""
    return cell in current().cells


def chosen() -> Runtime | None:
    """The runtime of the cell that this task has chosen, if it has."""
    return _here.get()


def cells() -> list[Runtime]:
    """The runtimes of all cells, the control's first."""
    return list(current().cells.values())


def in_cell(cell: int) -> contextlib.AbstractContextManager[None]:
    """The work of the block, and what it begins, is that of a cell; as `of`."""
    return of(cell).entered()


def entered(cell: int | None) -> contextlib.AbstractContextManager[None]:
    """As `in_cell`; None for the cell that this task works for."""
    return (here() if cell is None else of(cell)).entered()


def begin() -> None:
    """The rest of this task works for no cell until it chooses one: whatever began it may have worked for another."""
    _here.set(None)


def part(kind: Callable[[], Part]) -> Part:
    """The part of this kind of the cell that this task works for; as `here`."""
    # Asked several times for each request: what is there is found without a further call.
    found: Part | None = _found.get(kind)
    return here().part(kind) if found is None else found


def part_of(cell: int | None, kind: Callable[[], Part]) -> Part:
    """The part of this kind of a cell, as `of`; None for the cell that this task works for."""
    if _only is not None and (cell is None or cell == _only.cell):
        found: Part | None = _only._parts.get(kind)
        if found is not None:
            return found
    return (here() if cell is None else of(cell)).part(kind)


def control(kind: Callable[[], Part]) -> Part:
    """The part of this kind that all cells of the process share."""
    found: Part | None = _shared.get(kind)
    return current().part(kind) if found is None else found


@contextlib.contextmanager
def installed(runtime: Runtime) -> Iterator[Runtime]:
    """Makes this the runtime of the process meanwhile, in place of the one before."""
    before = _control
    install(runtime)
    try:
        yield runtime
    finally:
        install(before)
