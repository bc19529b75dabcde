"""Where things lie: all in one database, or spread over the databases of several cells.

`runtime.install` chooses the placement of a process, and chooses anew when the process begins to serve a cell or leaves
one. Code that depends on the number of databases is a method or an attribute of both classes, so that other modules
only ask the placement for a cell.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from store.errors import CellAway

Result = TypeVar("Result")

CONTROL = 0


class Cell(Protocol):
    """The members of a cell's runtime that a placement uses."""

    cell: int
    name: str

    def entered(self) -> AbstractContextManager[None]:
        """A context manager: the code of its block, and tasks that this code starts, work for this cell."""


class Located(Protocol):
    """An operation that finds its cell by an id or by receipt handles."""

    def choose_cell(self) -> bool:
        """Sets the operation's cell. Returns False if this process has to look the cell up."""


class Topic(Protocol):
    """The members of a topic that a placement uses."""

    @property
    def cell_id(self) -> int:
        """The cell that the topic lies in."""


class Placement:
    """Everything lies in one database, the control's."""

    # Whether there are several cells. Only code that keeps the list of cells and the copies asks this.
    several = False
    # Whether topics may move between databases. A move ends the sessions of a cell; so each new connection needs the
    # map's version.
    topics_move = False
    # Whether the cell of new work is known before the body of its request is read, which names the topic.
    is_known_unread = True
    # Whether new work is refused at once while its database does not answer. If there is only one database, requests
    # wait for it.
    refuses_silent = False

    def label(self, cell: Cell | None = None) -> str | None:
        """The name of a cell for answers and pages, by default of this task's cell; None with only one database."""
        return None

    def away(self, cell: Cell | None, problem: str) -> CellAway | None:
        """The refusal for a cell that is away while others answer. None in one database, or without a cell."""
        return None

    def choose(self, operation: Located) -> bool:
        """Has an operation choose its cell, as far as this process knows the cell; False: it has to be looked up."""
        return True

    def of_topic(self, name: str, look_up: Callable[[str], Topic | None]) -> int | None:
        """The cell of the topic that `look_up` finds; None if there is none. One database needs no look-up."""
        return CONTROL

    def of_handles(self, given: Iterable[str], cell_of: Callable[[str], int]) -> dict[int, list[str]]:
        """Receipt handles by the cell that `cell_of` reads from each. The handles of one cell keep their order."""
        return {CONTROL: list(given)}

    async def beside(self, look_up: Callable[[], Awaitable[str | None]]) -> str | None:
        """The topic that `look_up` finds, in whose cell new topics are created. One database needs no look-up."""
        return None

    async def everywhere(self, work: Callable[[], Awaitable[Result]]) -> list[Result]:
        """The result of `work` in each cell, the control first. The cells work at once.

        After `work` has ended in all cells, raises an exception that it raised in one of them.
        """
        return [await work()]


class OverCells(Placement):
    """Each topic lies in the database of its cell, with the transactions, entries and deliveries of the topic.

    `cells`: the cells that this process serves, by id. `here` returns the cell that the calling task works for.
    """

    several = True
    topics_move = True
    is_known_unread = False
    refuses_silent = True

    def __init__(self, cells: Mapping[int, Cell], here: Callable[[], Cell]) -> None:
        self._cells = cells
        self._here = here

    def label(self, cell: Cell | None = None) -> str | None:
        return (cell or self._here()).name

    def away(self, cell: Cell | None, problem: str) -> CellAway | None:
        if cell is None:
            return None
        return CellAway(
            f"The cell {cell.name} is away ({problem}): nothing was stored there; topics of other cells can still be "
            "used. Try again in a second."
        )

    def choose(self, operation: Located) -> bool:
        return operation.choose_cell()

    def of_topic(self, name: str, look_up: Callable[[str], Topic | None]) -> int | None:
        topic = look_up(name)
        return None if topic is None else topic.cell_id

    def of_handles(self, given: Iterable[str], cell_of: Callable[[str], int]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for handle in given:
            found.setdefault(cell_of(handle), []).append(handle)
        return found

    async def beside(self, look_up: Callable[[], Awaitable[str | None]]) -> str | None:
        return await look_up()

    async def everywhere(self, work: Callable[[], Awaitable[Result]]) -> list[Result]:
        async def of(cell: Cell) -> Result:
            with cell.entered():
                return await work()

        ended = await asyncio.gather(*map(of, self._cells.values()), return_exceptions=True)
        results = []
        for result in ended:
            if isinstance(result, BaseException):
                raise result
            results.append(result)
        return results
