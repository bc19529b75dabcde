"""Lists transactions by state, group, topic and age: the undecided ones first, then the latest decisions."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from store.db import sync
from store.db.statements import Statement
from store.models import Topic
from store.naming import topic_names
from transactions import answers, groups
from transactions.answers import TransactionSummary
from transactions.models import ProducerGroup
from transactions.reads.states import FIND_TRANSACTIONS
from transactions.rows import Decider, State, TransactionRow


class HalfCount(NamedTuple):
    """How many undecided transactions match, up to a limit."""

    halves: int


class ListedEnd(NamedTuple):
    """A decided transaction of a list: the columns of TransactionRow behind the place where the next page begins.

    `go_on_below` is null when no older operation is left. A list without a match is one row whose columns are null from
    `operation_id` on.
    """

    go_on_below: int | None
    operation_id: int | None
    transaction_id: UUID
    producer_group_id: int
    endpoint_id: int | None
    state: State
    check_times: int
    next_check_at: datetime | None
    stored_at: datetime
    log_segment: int
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    queue_offsets: list[int | None] | None
    decided_by: Decider | None
    decided_at: datetime | None
    last_failure: str | None


COUNT_LISTED = Statement(__file__, "count_listed", HalfCount)
LIST_DISCARDED = Statement(__file__, "list_discarded", TransactionRow)
LIST_DUE_HALVES = Statement(__file__, "list_due_halves", TransactionRow)
LIST_ENDED = Statement(__file__, "list_ended", ListedEnd)
LIST_HALVES = Statement(__file__, "list_halves", TransactionRow)

UNDECIDED = ("PREPARED", "DISCARDED")
DECISION_OF_STATE = {"COMMITTED": "COMMIT", "ROLLED_BACK": "ROLLBACK"}
STATES = (*UNDECIDED, *DECISION_OF_STATE)

# Operations that one page reads for its filter: 10,000 of them, backwards by their key, take some 15 ms.
MAX_LOOKED_AT = 10_000
NO_SUCH_ID = -1
# Ten years: an age beyond the year 1 is no time any more.
MAX_AGE_SECONDS = 10 * 366 * 86400


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which transactions to list; None is no condition. The name of a missing group or topic matches none."""

    state: str | None = None
    producer_group: str | None = None
    topic: str | None = None
    older_than_seconds: float = 0


class Place(NamedTuple):
    """Where a page begins: among the undecided behind a begin time and id, or among the operations below an id."""

    stored_at: datetime | None = datetime.max.replace(tzinfo=UTC)
    transaction_id: uuid.UUID = uuid.UUID(int=2**128 - 1)
    below_operation: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page:
    """A page of transactions, and where the next one begins.

    A page may hold fewer than were asked for, even none, although there are more: see MAX_LOOKED_AT.
    """

    transactions: list[TransactionSummary]
    after: Place | None


def page(wanted: Wanted, after: Place | None, count: int) -> Page:
    """`count` transactions at most, from the beginning or from behind a place."""
    place = after or Place()
    rows: list[TransactionRow] = []
    if place.stored_at is not None:
        if wanted.state not in DECISION_OF_STATE:
            rows, rest = _undecided(wanted, place, count)
            if rest is not None or wanted.state in UNDECIDED:
                return Page(_summaries(rows), rest)
        place = Place(stored_at=None)
    ended, rest = _ended(wanted, place, count - len(rows))
    return Page(_summaries([*rows, *ended]), rest)


def _undecided(wanted: Wanted, place: Place, count: int) -> tuple[list[TransactionRow], Place | None]:
    parameters = {
        **_filters(wanted),
        "discarded": None if wanted.state is None else wanted.state == "DISCARDED",
        "before": place.stored_at,
        "before_id": place.transaction_id,
        "max_rows": count + 1,
    }
    rows = list(sync.read(LIST_HALVES, parameters))
    if len(rows) <= count:
        return rows, None
    last = rows[count - 1]
    return rows[:count], Place(last.stored_at, last.transaction_id)


def _ended(wanted: Wanted, place: Place, count: int) -> tuple[list[TransactionRow], Place | None]:
    if count == 0:
        return [], place
    decisions = list(DECISION_OF_STATE.values()) if wanted.state is None else [DECISION_OF_STATE[wanted.state]]
    parameters = {
        **_filters(wanted),
        "decisions": decisions,
        "before_operation": place.below_operation,
        "max_looked_at": MAX_LOOKED_AT,
        "max_rows": count + 1,
    }
    listed = sync.read(LIST_ENDED, parameters)
    by_id = {row.operation_id: TransactionRow(*row[2:]) for row in listed if row.operation_id is not None}
    ids, rows = list(by_id), list(by_id.values())
    below = ids[count - 1] if len(rows) > count else listed[0].go_on_below
    return rows[:count], None if below is None else Place(stored_at=None, below_operation=below)


def of_ids(ids: Sequence[uuid.UUID]) -> list[TransactionSummary]:
    """These transactions, those that are still kept."""
    return _summaries(sync.read(FIND_TRANSACTIONS, {"transaction_ids": list(ids)}))


class DiscardedPlace(NamedTuple):
    """Where a page of the discarded begins: behind a time of discard and an id."""

    discarded_at: datetime = datetime.max.replace(tzinfo=UTC)
    transaction_id: uuid.UUID = uuid.UUID(int=2**128 - 1)


def discarded(
    wanted: Wanted, since: datetime | None, until: datetime | None, after: DiscardedPlace | None, count: int
) -> tuple[list[TransactionSummary], DiscardedPlace | None]:
    """`count` discarded transactions at most, the latest first, discarded from `since` on and before `until`."""
    place = after or DiscardedPlace()
    parameters = {
        **_filters(wanted),
        "since": since,
        "until": until,
        "before": place.discarded_at,
        "before_id": place.transaction_id,
        "max_rows": count + 1,
    }
    rows = sync.read(LIST_DISCARDED, parameters)
    shown = rows[:count]
    last = shown[-1] if len(rows) > count else None
    following = DiscardedPlace(last.decided_at, last.transaction_id) if last and last.decided_at else None
    return _summaries(shown), following


class DuePlace(NamedTuple):
    """Where a page of the pending by their next check begins: behind a time and an id."""

    next_check_at: datetime = datetime.min.replace(tzinfo=UTC)
    transaction_id: uuid.UUID = uuid.UUID(int=0)


def due(
    wanted: Wanted, after: DuePlace | None, count: int, left_out: Sequence[int] = ()
) -> tuple[list[TransactionSummary], DuePlace | None]:
    """`count` pending transactions at most, the longest due for a check first, without the groups of these ids."""
    place = after or DuePlace()
    parameters = {
        **_filters(wanted),
        "after": place.next_check_at,
        "after_id": place.transaction_id,
        "left_out": list(left_out),
        "max_rows": count + 1,
    }
    rows = sync.read(LIST_DUE_HALVES, parameters)
    shown = rows[:count]
    last = shown[-1] if len(rows) > count else None
    following = DuePlace(last.next_check_at, last.transaction_id) if last and last.next_check_at else None
    return _summaries(shown), following


def count_undecided(wanted: Wanted, max_count: int) -> int:
    """How many transactions are in the wanted state, PREPARED or DISCARDED, and match, counted up to `max_count`."""
    parameters = {**_filters(wanted), "discarded": wanted.state == "DISCARDED", "max_count": max_count}
    return sync.read(COUNT_LISTED, parameters)[0].halves


def _filters(wanted: Wanted) -> dict[str, object]:
    """The parameters of a filter. Names become ids first: the planner then estimates how many rows match."""
    return {
        "group_id": _id_of(ProducerGroup, wanted.producer_group),
        "topic_id": _id_of(Topic, wanted.topic),
        "older_than_seconds": wanted.older_than_seconds,
    }


def _id_of(table: type[ProducerGroup] | type[Topic], name: str | None) -> int | None:
    if name is None:
        return None
    found: int | None = table._default_manager.filter(name=name).values_list("id", flat=True).first()
    return NO_SUCH_ID if found is None else found


def _summaries(rows: Sequence[TransactionRow]) -> list[TransactionSummary]:
    """Transactions with the names of their groups and topics."""
    group_ids = {row.producer_group_id for row in rows}
    topic_ids = {topic_id for row in rows for topic_id in row.topic_ids}
    group_names = {id_: groups.deleted_name(id_) for id_ in group_ids} | _names(ProducerGroup, group_ids)
    topic_names = {id_: topic_names.deleted(id_) for id_ in topic_ids} | _names(Topic, topic_ids)
    return [
        TransactionSummary(
            transaction_id=row.transaction_id,
            producer_group=group_names[row.producer_group_id],
            state=row.state,
            check_times=row.check_times,
            next_check_at=answers.next_check_at(row),
            last_failure=row.last_failure,
            stored_at=row.stored_at,
            decided_at=row.decided_at,
            decided_by=row.decided_by,
            commit_log_offset=row.log_offsets[0],
            messages=answers.parts(row, topic_names),
        )
        for row in rows
    ]


def _names(table: type[ProducerGroup] | type[Topic], ids: Iterable[int]) -> dict[int, str]:
    return dict(table._default_manager.filter(id__in=ids).values_list("id", "name"))
