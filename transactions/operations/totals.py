"""Totals: how many transactions were ever committed, rolled back and discarded, by topic and producer group.

A task counts operations outside of the message path and adds them to the totals, which are kept when segments are
dropped. A reader of the totals adds operations that the task has not counted yet.
"""

from collections.abc import Collection, Iterator, Sequence

from store.cells import cells
from store.db import connections, sync
from store.db.statements import Statement
from store.naming import namespaces
from transactions.rows import TotalOf

# The most operations of one statement; counting 100,000 takes some 100 ms.
MAX_OPERATIONS = 100_000
# The most statements of one run: 5 million operations. The next run continues.
MAX_STEPS = 50
# The most pairs of a topic and a producer group that are read.
MAX_ROWS = 2000
ENDS = ("committed", "rolled_back", "discarded")


COUNT_TOTALS = Statement(__file__, "count_totals", one=bool)
LIST_TOTALS = Statement(__file__, "list_totals", TotalOf)


async def count() -> None:
    """Adds new operations to the totals of this cell."""
    for _ in range(MAX_STEPS):
        moved = await connections.read(COUNT_TOTALS, {"max_operations": MAX_OPERATIONS})
        if not any(moved):
            return


def ever(
    *, topic: str | None = None, producer_group: str | None = None, namespace: str | None = None
) -> Sequence[TotalOf]:
    """The totals of this cell, at most MAX_ROWS pairs, including operations that are not counted yet.

    With `namespace`, only topics of this namespace.
    """
    limits = {"max_operations": MAX_OPERATIONS, "max_rows": MAX_ROWS, "starts": namespaces.starts(namespace)}
    return sync.read(LIST_TOTALS, {"topic": topic, "producer_group": producer_group, **limits})


def of_topic(topic: str) -> Sequence[TotalOf]:
    """The totals of a topic by producer group, over all cells, the largest first."""
    return _together(cells.ask(lambda: ever(topic=topic)).values())


def of_group(producer_group: str) -> Sequence[TotalOf]:
    """The totals of a producer group by topic, over all cells, the largest first."""
    return _together(cells.ask(lambda: ever(producer_group=producer_group)).values())


def _together(found: Collection[Sequence[TotalOf]]) -> Sequence[TotalOf]:
    return sorted(cells.together(found, lambda row: row[:2], _both, _ended), key=_ended, reverse=True)


def _both(one: TotalOf, other: TotalOf) -> TotalOf:
    ends = {end: getattr(one, end) + getattr(other, end) for end in ENDS}
    return one._replace(**ends)


def _ended(row: TotalOf) -> int:
    return row.committed + row.rolled_back + row.discarded


def by_end(namespace: str | None = None) -> Iterator[tuple[tuple[str, str, str], int]]:
    """The totals of this cell, each with its topic, producer group and end. With `namespace`, only its topics."""
    for row in ever(namespace=namespace):
        for end in ENDS:
            yield (row.topic, row.producer_group, end), getattr(row, end)
