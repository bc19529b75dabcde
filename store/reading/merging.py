"""Lists over all cells: reads one page of each cell and merges them into one page, in the order of the list.

A list has a cursor in each cell. Rows of a cell that is away appear on a later page, if the cell is back by then. A
list is complete if its last page names no missing cell.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from store.cells import cells
from store.process import runtime

Row = TypeVar("Row")
Cursor = TypeVar("Cursor")


class Part(NamedTuple, Generic[Row, Cursor]):
    """A page of one cell: rows, each with its cursor, and the cursor of the next page, None after the last page."""

    rows: Sequence[tuple[Row, Cursor]]
    after: Cursor | None


@dataclass(frozen=True, slots=True)
class Page(Generic[Row, Cursor]):
    """Rows of all cells, the cell of each row, and the cursors of the next page by cell; None after the last page.

    A page may have fewer rows than requested, even none, although more follow. `missing`: the names of cells that did
    not answer.
    """

    rows: list[Row]
    cells: list[int]
    after: dict[int, Cursor] | None
    missing: list[str]


def from_start(cursor: Cursor) -> dict[int, Cursor]:
    """The cursors of the first page, by cell."""
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
    """A page of at most `count` rows, in the order of the rows and their cursors.

    `read` returns at most `count` rows of the entered cell after a cursor; `topics` returns the ids of a row's topics.
    Copies, rows of topics that have left a cell's database, are skipped.
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
            # The cell's next page may have rows that come before rows of other cells, so the merged page ends here.
            break
        cell = choose(heads, key=heads.__getitem__)
        row, after[cell] = left[cell].pop(0)
        rows.append(row)
        of.append(cell)
    after |= {cell: part.after for cell, part in parts.items() if not left[cell]}
    rest = {cell: cursor for cell, cursor in after.items() if cursor is not None}
    return Page(rows, of, rest if rest.keys() & parts.keys() else None, missing)
