"""Lists over all cells: each gives a page of its own, and these become one page by the order of the list.

A list goes on by a cursor in each cell. Rows of a cell that is away come on a later page, if it is back by then:
a list is whole where its last page names no cell as missing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from store.cells import cells
from store.process import runtime

Row = TypeVar("Row")
Cursor = TypeVar("Cursor")


class Part(NamedTuple, Generic[Row, Cursor]):
    """A page of one cell: rows, each with the cursor behind it, and that of the next page; None after the last."""

    rows: Sequence[tuple[Row, Cursor]]
    after: Cursor | None


@dataclass(frozen=True, slots=True)
class Page(Generic[Row, Cursor]):
    """Rows of all cells, the cell of each, and where the next page starts in each that has more; None after the last.

    It may hold fewer rows than were asked for, even none, although there are more. `missing` are the names of the cells
    that did not answer.
    """

    rows: list[Row]
    cells: list[int]
    after: dict[int, Cursor] | None
    missing: list[str]


def from_start(cursor: Cursor) -> dict[int, Cursor]:
    """The first cursor of a list, in each cell."""
    return dict.fromkeys(runtime.current().cells, cursor)


def page(
    read: Callable[[Cursor, int], Part[Row, Cursor]],
    cursors: Mapping[int, Cursor],
    count: int,
    order: Callable[[Row, Cursor], Any],
    topics: Callable[[Row], Collection[int | None]],
    *,
    descending: bool = True,
) -> Page[Row, Cursor]:
    """A page of `count` rows at most, by the order of the rows and of the cursors behind them.

    `read` returns `count` rows at most of the cell that it has entered, behind a cursor; `topics` the ids of a row's
    topics. What a split left of a topic in the other database is a copy, and is passed over.
    """

    def own() -> Part[Row, Cursor]:
        here = runtime.here()
        part = read(cursors[here.cell], count)
        return part._replace(rows=here.departed.left_out(part.rows, lambda each: topics(each[0])))

    with cells.leaving_out() as missing:
        parts = cells.ask(own, only=cursors)
    rows: list[Row] = []
    of: list[int] = []
    after: dict[int, Cursor | None] = dict(cursors)
    left = {cell: list(part.rows) for cell, part in parts.items()}
    choose = max if descending else min
    while len(rows) < count:
        heads = {cell: order(*of_cell[0]) for cell, of_cell in left.items() if of_cell}
        if not heads or any(not left[cell] and part.after is not None for cell, part in parts.items()):
            # What such a cell has on its next page may come before the others' rows.
            break
        cell = choose(heads, key=heads.__getitem__)
        row, after[cell] = left[cell].pop(0)
        rows.append(row)
        of.append(cell)
    after |= {cell: part.after for cell, part in parts.items() if not left[cell]}
    rest = {cell: cursor for cell, cursor in after.items() if cursor is not None}
    return Page(rows, of, rest if rest.keys() & parts.keys() else None, missing)
