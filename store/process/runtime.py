"""The runtime of a process: its state between two requests, made at its start and closed at its end.

Connections, writers, caches and background work are *parts*. No module makes a part at import: the web's lifespan, the
worker's start and a test install a runtime, and each part is made at its first use.

Each cell has a separate runtime. A part that holds a connection or caches entries, halves or timers belongs to a cell:
`part`. A part that caches the configuration or limits the whole process belongs to the control, cell 0: `control`. An
operation names its cell. Other work chooses a cell at its start by `in_cell`, and tasks that it starts inherit the
cell. A task that serves several callers is started by `Runtime.task`, and a function that the event loop calls enters
the cell of its part.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from store.errors import CellAway, SystemBusy
from store.process.departed import Departed
from store.process.placement import CONTROL as CONTROL
from store.process.placement import OverCells, Placement

Part = TypeVar("Part")


class Runtime:
    """The parts of one cell in this process, at most one of each kind. The control's runtime has all runtimes.

    `url`: the cell's database; empty for the control, whose URL is in the settings. `parent`: the cell it was split
    from.
    """

    def __init__(self, cell: int = CONTROL, name: str = "c0", url: str = "", parent: int | None = None) -> None:
        self.cell = cell
        self.name = name
        self.url = url
        self.parent = parent
        # The copies in its database that belong to other cells, and the reason of its fence, as the latest session
        # read.
        self.departed = Departed()
        self.fence = ""
        # `close` sets this for good: work that still runs in a thread must start nothing that outlasts the runtime.
        self.is_closing = False
        # All cells by id, this one included. The runtime of another cell than the control has only itself.
        self.cells: dict[int, Runtime] = {cell: self}
        # In the control's runtime only: functions that start or end a cell, explain its state, open its sessions.
        self.begins: Callable[[Runtime], None] | None = None
        self.ends: Callable[[Runtime], None] | None = None
        self.explain: Callable[[Any, Runtime], Awaitable[str]] | None = None
        self.connects: Callable[..., Awaitable[Any]] | None = None
        self._parts: dict[Callable[[], Any], Any] = {}
        self._closed: set[Callable[[], Any]] = set()
        self._making = threading.RLock()

    def part(self, kind: Callable[[], Part]) -> Part:
        """The part of this kind (a class or another factory), made at its first use. Callable from any thread.

        Raises SystemBusy for a part that was closed: late work would open connections that are never closed, and a pool
        that connects to a missing database keeps the event loop from ending.
        """
        part: Part | None = self._parts.get(kind)
        return self._make(kind) if part is None else part

    def _make(self, kind: Callable[[], Part]) -> Part:
        with self._making:
            if kind in self._closed:
                raise ending() if _control in (None, self) or current().is_closing else self._left()
            if kind not in self._parts:
                # A part may store its runtime, `here()`.
                with self.entered():
                    self._parts[kind] = kind()
            part: Part = self._parts[kind]
        return part

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """A context manager: the code of its block, and tasks that this code starts, work for this cell."""
        token = _here.set(self)
        try:
            yield
        finally:
            _here.reset(token)

    def task(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Starts a task of this cell, whichever cell the caller works for."""
        with self.entered():
            return asyncio.get_running_loop().create_task(work, name=name)

    def add(self, cell: "Runtime") -> None:
        """Makes this process serve a cell, in place of an earlier runtime of it. Call it on the control's runtime."""
        if self.is_closing:
            return
        self._serve({**self.cells, cell.cell: cell})
        if self.begins is not None:
            self.begins(cell)

    def remove(self, cell: int) -> None:
        """Makes this process leave a cell. Call it on the control's runtime."""
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
        return CellAway(f"This process has just disconnected from the cell {self.name}: try again in a second.")

    def forget(self) -> None:
        """Calls `forget_all`, which drops cached configuration, on the parts that have it. Callable from any thread."""
        for part in [part for cell in self.cells.values() for part in list(cell._parts.values())]:
            getattr(part, "forget_all", lambda: None)()

    async def close(self, first: tuple[Callable[[], Any], ...] = ()) -> None:
        """Closes the parts that have a `close`: first the kinds in `first`, in their order, then the newest first.

        Other cells are closed before the control. Parts without a `close` stay for work that still runs in a thread.
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
    """The refusal of work that starts after its runtime was closed."""
    return SystemBusy("This process of the broker is stopping: nothing was stored, send the request again.")


_control: Runtime | None = None
# The runtime of a process that has only one cell; None if it has several cells.
_only: Runtime | None = None
# Parts that were already looked up, of `_only` and of the control: a dictionary needs no call for each request.
_found: dict[Callable[[], Any], Any] = {}
_shared: dict[Callable[[], Any], Any] = {}
# A module variable, because each request reads it several times.
placement = Placement()
# The cell that this task works for.
_here: ContextVar[Runtime | None] = ContextVar("cell", default=None)


def install(runtime: Runtime | None) -> None:
    """Makes this the control's runtime of the process, or leaves the process without a runtime."""
    global _control, _only, _found, _shared, placement
    _control, _shared = runtime, {} if runtime is None else runtime._parts
    placement = OverCells(runtime.cells, here) if runtime is not None and len(runtime.cells) > 1 else Placement()
    _only, _found = (None, {}) if placement.several else (runtime, _shared)


def current() -> Runtime:
    """The control's runtime of the process, which knows the runtimes of all cells. Raises RuntimeError if no runtime is
    installed: a process that uses parts makes its runtime first.
    """
    if _control is None:
        raise RuntimeError("this process has no runtime: install one before it uses connections, writers or caches")
    return _control


def here() -> Runtime:
    """The runtime of the cell that this task works for.

    Raises RuntimeError in a process with several cells if the task has not chosen one: any choice would be a guess.
    """
    chosen = _here.get() or _only
    if chosen is None:
        _ = current()
        raise RuntimeError("this work has chosen no cell: it begins with runtime.in_cell")
    return chosen


def of(cell: int) -> Runtime:
    """The runtime of a cell. Raises CellAway if this process does not know the cell."""
    found = current().cells.get(cell)
    if found is None:
        raise CellAway(f"This process has not loaded the cell {cell} yet: nothing was stored, try again in a second.")
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
    """Like `Runtime.entered`, for the cell with this id. Raises the errors of `of`."""
    return of(cell).entered()


def entered(cell: int | None) -> contextlib.AbstractContextManager[None]:
    """Does what `in_cell` does. None stands for the cell that this task already works for."""
    return (here() if cell is None else of(cell)).entered()


def begin() -> None:
    """Makes this task work for no cell until it chooses one: the task that started it may have worked for a cell."""
    _here.set(None)


def part(kind: Callable[[], Part]) -> Part:
    """The part of this class in the cell that this task works for. Raises the errors of `here`."""
    # Each request calls this several times: a part that exists is found without a further call.
    found: Part | None = _found.get(kind)
    return here().part(kind) if found is None else found


def part_of(cell: int | None, kind: Callable[[], Part]) -> Part:
    """The part of this class in a cell; None stands for the cell that this task works for. Raises as `of` does."""
    if _only is not None and (cell is None or cell == _only.cell):
        found: Part | None = _only._parts.get(kind)
        if found is not None:
            return found
    return (here() if cell is None else of(cell)).part(kind)


def control(kind: Callable[[], Part]) -> Part:
    """The part of this class that all cells of the process share."""
    found: Part | None = _shared.get(kind)
    return current().part(kind) if found is None else found


@contextlib.contextmanager
def installed(runtime: Runtime) -> Iterator[Runtime]:
    """Within the block this is the runtime of the process, in place of the runtime before."""
    before = _control
    install(runtime)
    try:
        yield runtime
    finally:
        install(before)
