"""Lists over all cells: each gives a page of its own, and these become one page by the order of the list.

Where a list goes on is a place in each cell. Rows of a cell that is away come on a later page, if it is back by then:
a list is whole where its last page names no cell as missing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from store.naming import cells
from store.process import runtime

Row = TypeVar("Row")
Place = TypeVar("Place")


class Part(NamedTuple, Generic[Row, Place]):
    """A page of one cell: rows, each with the place behind it, and where the next page starts; None after the last."""

    rows: Sequence[tuple[Row, Place]]
    after: Place | None


@dataclass(frozen=True, slots=True)
class Page(Generic[Row, Place]):
    """Rows of all cells, the cell of each, and where the next page starts in each that has more; None after the last.

    It may hold fewer rows than were asked for, even none, although there are more. `missing` are the names of the cells
    that did not answer.
    """

    rows: list[Row]
    cells: list[int]
    after: dict[int, Place] | None
    missing: list[str]


def from_start(place: Place) -> dict[int, Place]:
    """The first place of a list, in each cell."""
    return dict.fromkeys(runtime.current().cells, place)


def page(
    read: Callable[[Place, int], Part[Row, Place]],
    places: Mapping[int, Place],
    count: int,
    order: Callable[[Row, Place], Any],
    *,
    descending: bool = True,
) -> Page[Row, Place]:
    """A page of `count` rows at most, by the order of the rows and of the places behind them.

    `read` returns so many rows of the cell that it has entered, from a place on.
    """
    with cells.leaving_out() as missing:
        parts = cells.ask(lambda: read(places[runtime.here().cell], count), only=places)
    rows: list[Row] = []
    of: list[int] = []
    after: dict[int, Place | None] = dict(places)
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
    rest = {cell: place for cell, place in after.items() if place is not None}
    return Page(rows, of, rest if rest.keys() & parts.keys() else None, missing)
