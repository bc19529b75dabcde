"""Lists transactions by state, group, topic and age: the undecided ones first, then the latest decisions."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from store.cells import cells
from store.db import sync
from store.db.statements import Statement
from store.models import Topic
from store.naming import namespaces, topic_names
from store.process import runtime
from store.reading import merging, previews
from store.reading.merging import Part
from transactions import groups, results
from transactions.models import ProducerGroup
from transactions.reads.states import FIND_TRANSACTIONS
from transactions.results import TransactionSummary
from transactions.rows import ListedEnd, TransactionRow

Row = TypeVar("Row")
# The values in a cursor, in order.
P = TypeVar("P")


LIST_ENDED = Statement(__file__, "list_ended", ListedEnd)
LIST_HALVES = Statement(__file__, "list_halves", TransactionRow)

UNDECIDED = ("PREPARED", "DISCARDED")
DECISION_OF_STATE = {"COMMITTED": "COMMIT", "ROLLED_BACK": "ROLLBACK"}
STATES = (*UNDECIDED, *DECISION_OF_STATE)

# The most operations that one page reads for its filter; 10,000, backwards by their key, take some 15 ms.
MAX_LOOKED_AT = 10_000
NO_SUCH_ID = -1
# The largest age in a filter, ten years: a much larger age would lead to an invalid time, before the year 1.
MAX_AGE_SECONDS = 10 * 366 * 86400


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which transactions to list; None means no condition. The name of a missing group or topic matches none.

    A transaction is within a namespace if its producer group is.
    """

    state: str | None = None
    producer_group: str | None = None
    topic: str | None = None
    older_than_seconds: float = 0
    namespace: str | None = None


class Cursor(NamedTuple):
    """Where the next page begins. Undecided transactions come first: after a time of begin and an id. Then come
    operations below an operation id.
    """

    stored_at: datetime | None = datetime.max.replace(tzinfo=UTC)
    transaction_id: uuid.UUID = uuid.UUID(int=2**128 - 1)
    below_operation: int = 2**63 - 1


# One page of the list of transactions.
Page = merging.Page[TransactionSummary, P]


def page(wanted: Wanted, after: Mapping[int, Cursor] | None, count: int) -> Page[Cursor]:
    """The first `count` transactions, from the beginning or after a cursor in each cell.

    A page may have fewer transactions than requested, even none, although more follow: see MAX_LOOKED_AT.
    """
    filters = parameters(wanted)

    def read(cursor: Cursor, most: int) -> Part[TransactionRow, Cursor]:
        undecided: Sequence[tuple[TransactionRow, Cursor]] = ()
        if cursor.stored_at is not None:
            if wanted.state not in DECISION_OF_STATE:
                undecided, rest = _undecided(wanted.state, filters, cursor, most)
                if rest is not None or wanted.state in UNDECIDED:
                    return Part(undecided, rest)
            cursor = Cursor(stored_at=None)
        ended, rest = _ended(wanted.state, filters, cursor, most - len(undecided))
        return Part([*undecided, *ended], rest)

    cursors = merging.from_start(Cursor()) if after is None else after
    return summarized(merging.page(read, cursors, count, _order, topics_of))


def _order(row: TransactionRow, behind: Cursor) -> tuple[bool, datetime | None, UUID]:
    is_undecided = behind.stored_at is not None
    return is_undecided, row.stored_at if is_undecided else row.decided_at, row.transaction_id


def topics_of(row: TransactionRow) -> Sequence[int]:
    """The ids of a transaction's topics."""
    return row.topic_ids


def _undecided(
    state: str | None, filters: Mapping[str, object], cursor: Cursor, count: int
) -> Part[TransactionRow, Cursor]:
    parameters = {
        **filters,
        "discarded": None if state is None else state == "DISCARDED",
        "before": cursor.stored_at,
        "before_id": cursor.transaction_id,
        "max_rows": count + 1,
    }
    return up_to(count, sync.read(LIST_HALVES, parameters), lambda row: Cursor(row.stored_at, row.transaction_id))


def up_to(count: int, rows: Sequence[Row], cursor: Callable[[Row], P]) -> Part[Row, P]:
    """The first `count` rows; the last row was only read to see whether there are more."""
    shown = [(row, cursor(row)) for row in rows[:count]]
    return Part(shown, shown[-1][1] if len(rows) > count else None)


def _ended(
    state: str | None, filters: Mapping[str, object], cursor: Cursor, count: int
) -> Part[TransactionRow, Cursor]:
    if count == 0:
        return Part([], cursor)
    decisions = list(DECISION_OF_STATE.values()) if state is None else [DECISION_OF_STATE[state]]
    parameters = {
        **filters,
        "decisions": decisions,
        "before_operation": cursor.below_operation,
        "max_looked_at": MAX_LOOKED_AT,
        "max_rows": count + 1,
    }
    listed = sync.read(LIST_ENDED, parameters)
    found = [
        (TransactionRow(*row[2:]), Cursor(stored_at=None, below_operation=row.operation_id))
        for row in listed
        if row.operation_id is not None
    ]
    if len(found) > count:
        return Part(found[:count], found[count - 1][1])
    below = listed[0].go_on_below
    return Part(found, None if below is None else Cursor(stored_at=None, below_operation=below))


def of_ids(ids: Sequence[uuid.UUID]) -> Page[None]:
    """The transactions with these ids that are still kept, in one page. Raises CellAway."""
    asked = {"transaction_ids": list(ids)}

    def read() -> Sequence[TransactionRow]:
        rows = sync.read(FIND_TRANSACTIONS, asked)
        # Called after the read, because opening a connection reads which topics have left.
        return runtime.here().departed.left_out(rows, topics_of)

    found = [(row, cell) for cell, rows in cells.ask(read).items() for row in rows]
    return merging.Page(_summaries([row for row, _ in found]), [cell for _, cell in found], None, [])


def keys_of(page: Page[Any]) -> dict[UUID, list[str]]:
    """The keys of each transaction's first message, by transaction; transactions without keys are missing."""
    firsts = [(cell, one.commit_log_offset) for cell, one in zip(page.cells, page.rows, strict=True)]
    found = previews.keys(firsts)
    return {one.transaction_id: found[first] for one, first in zip(page.rows, firsts, strict=True) if first in found}


def summarized(page: merging.Page[TransactionRow, P]) -> Page[P]:
    """A page of rows, with the names of groups and topics."""
    return merging.Page(_summaries(page.rows), page.cells, page.after, page.missing)


def parameters(wanted: Wanted) -> dict[str, object]:
    """The parameters of a filter, with ids in place of names, so that the planner can estimate the matching rows."""
    return {
        "group_ids": _groups_of(wanted),
        "topic_id": _topic_of(wanted.topic),
        "older_than_seconds": wanted.older_than_seconds,
    }


def _groups_of(wanted: Wanted) -> list[int] | None:
    if wanted.producer_group is None and wanted.namespace is None:
        return None
    rows = ProducerGroup.objects.filter(namespaces.within(wanted.namespace))
    if wanted.producer_group is not None:
        rows = rows.filter(name=wanted.producer_group)
    return list(rows.values_list("id", flat=True))


def _topic_of(name: str | None) -> int | None:
    if name is None:
        return None
    found: int | None = Topic.objects.filter(name=name).values_list("id", flat=True).first()
    return NO_SUCH_ID if found is None else found


def _summaries(rows: Sequence[TransactionRow]) -> list[TransactionSummary]:
    """Transactions with the names of their groups and topics."""
    group_ids = {row.producer_group_id for row in rows}
    topic_ids = {topic_id for row in rows for topic_id in row.topic_ids}
    group_names = {id_: groups.deleted_name(id_) for id_ in group_ids} | _names(ProducerGroup, group_ids)
    of_topics = {id_: topic_names.deleted(id_) for id_ in topic_ids} | _names(Topic, topic_ids)
    return [
        TransactionSummary(
            transaction_id=row.transaction_id,
            producer_group=group_names[row.producer_group_id],
            state=row.state,
            check_times=row.check_times,
            next_check_at=results.next_check_at(row),
            last_failure=row.last_failure,
            stored_at=row.stored_at,
            decided_at=row.decided_at,
            decided_by=row.decided_by,
            commit_log_offset=row.log_offsets[0],
            messages=results.parts(row, of_topics),
        )
        for row in rows
    ]


def _names(table: type[ProducerGroup] | type[Topic], ids: Iterable[int]) -> dict[int, str]:
    return dict(table._default_manager.filter(id__in=ids).values_list("id", "name"))
