"""Lists transactions by state, group, topic and age: the undecided ones first, then the latest decisions."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from store.db import sync
from store.db.connections import Row
from store.db.statements import Statement
from store.models import Topic
from transactions.models import ProducerGroup
from transactions.rows import ListedDiscarded, ListedEnded, ListedHalf

LIST_DISCARDED = Statement(__file__, "list_discarded", ListedDiscarded)
LIST_HALVES = Statement(__file__, "list_halves", ListedHalf)
LIST_ENDED = Statement(__file__, "list_ended", ListedEnded)

UNDECIDED = ("PREPARED", "DISCARDED")
DECISION_OF_STATE = {"COMMITTED": "COMMIT", "ROLLED_BACK": "ROLLBACK"}
STATES = (*UNDECIDED, *DECISION_OF_STATE)

# Decisions that one page looks at for its filter: reading 10,000 backwards by their key takes some 15 ms.
MAX_LOOKED_AT = 10_000
NO_SUCH_ID = -1


class Place(NamedTuple):
    """Where a page goes on: among the undecided behind a begin time and id, or among the decisions below an id."""

    stored_at: datetime | None = datetime.max.replace(tzinfo=UTC)
    transaction_id: uuid.UUID = uuid.UUID(int=2**128 - 1)
    below_operation: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which transactions are asked for; what is None asks for all. A name that nothing bears matches nothing."""

    state: str | None = None
    producer_group: str | None = None
    topic: str | None = None
    older_than_seconds: float = 0


@dataclass(frozen=True, slots=True)
class Page:
    """A page of transactions, as `history.of` tells them but without the history, and where the next one goes on.

    A page may hold fewer than were asked for, even none, although there are more: see MAX_LOOKED_AT.
    """

    transactions: list[dict[str, Any]]
    after: Place | None


def page(wanted: Wanted, after: Place | None, count: int) -> Page:
    """`count` transactions at most, from the beginning or from behind a place."""
    place = after or Place()
    rows: list[Row] = []
    if place.stored_at is not None:
        if wanted.state not in DECISION_OF_STATE:
            rows, rest = _undecided(wanted, place, count)
            if rest is not None or wanted.state in UNDECIDED:
                return Page(named(rows), rest)
        place = Place(stored_at=None)
    ended, rest = _ended(wanted, place, count - len(rows))
    return Page(named([*rows, *ended]), rest)


class DiscardedPlace(NamedTuple):
    """Where a page of the discarded goes on: behind a time of discard and an id."""

    discarded_at: datetime = datetime.max.replace(tzinfo=UTC)
    transaction_id: uuid.UUID = uuid.UUID(int=2**128 - 1)


def discarded(
    wanted: Wanted, since: datetime | None, until: datetime | None, after: DiscardedPlace | None, count: int
) -> tuple[list[dict[str, Any]], DiscardedPlace | None]:
    """`count` discarded transactions at most, the latest first, discarded from `since` on and before `until`."""
    place = after or DiscardedPlace()
    names = _filters(wanted)
    asked = {
        "group_id": names["group_id"],
        "topic_id": names["topic_id"],
        "since": since,
        "until": until,
        "before": place.discarded_at,
        "before_id": place.transaction_id,
        "max_rows": count + 1,
    }
    rows = list(sync.read(LIST_DISCARDED, asked))
    last = rows[count - 1] if len(rows) > count else None
    following = None if last is None else DiscardedPlace(last.discarded_at, last.transaction_id)
    return named(rows[:count]), following


def _undecided(wanted: Wanted, place: Place, count: int) -> tuple[list[Row], Place | None]:
    asked = {
        **_filters(wanted),
        "discarded": None if wanted.state is None else wanted.state == "DISCARDED",
        "before": place.stored_at,
        "before_id": place.transaction_id,
        "max_rows": count + 1,
    }
    rows = list(sync.read(LIST_HALVES, asked))
    if len(rows) <= count:
        return rows, None
    last = rows[count - 1]
    return rows[:count], Place(last.stored_at, last.transaction_id)


def _ended(wanted: Wanted, place: Place, count: int) -> tuple[list[Row], Place | None]:
    if count == 0:
        return [], place
    decisions = list(DECISION_OF_STATE.values()) if wanted.state is None else [DECISION_OF_STATE[wanted.state]]
    asked = {
        **_filters(wanted),
        "decisions": decisions,
        "before_operation": place.below_operation,
        "max_looked_at": MAX_LOOKED_AT,
        "max_rows": count + 1,
    }
    found = sync.read(LIST_ENDED, asked)
    rows = [row for row in found if row.operation_id is not None]
    if len(rows) > count:
        return rows[:count], Place(stored_at=None, below_operation=rows[count - 1].operation_id)
    go_on_below = found[0].go_on_below
    return rows, None if go_on_below is None else Place(stored_at=None, below_operation=go_on_below)


def _filters(wanted: Wanted) -> dict[str, Any]:
    """Names become ids first: PostgreSQL then knows what to expect."""
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


def named(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Transactions with the names of their groups and topics."""
    groups = _names(ProducerGroup, {row.producer_group_id for row in rows})
    topics = _names(Topic, {topic_id for row in rows for topic_id in row.topic_ids})
    return [
        {
            "transaction_id": row.transaction_id,
            "producer_group": groups.get(row.producer_group_id, f"(deleted producer group {row.producer_group_id})"),
            "state": row.state,
            "check_times": row.check_times,
            "next_check_at": row.next_check_at if row.state == "PREPARED" else None,
            "last_failure": row.last_failure,
            "stored_at": row.stored_at,
            "decided_at": row.decided_at,
            "decided_by": row.decided_by,
            "commit_log_offset": row.log_offsets[0],
            "messages": _messages(row, topics),
        }
        for row in rows
    ]


def _names(table: type[ProducerGroup] | type[Topic], ids: Iterable[int]) -> dict[int, str]:
    return dict(table._default_manager.filter(id__in=ids).values_list("id", "name"))


def _messages(row: Row, topics: dict[int, str]) -> list[dict[str, Any]]:
    offsets = row.queue_offsets or [None] * len(row.message_ids)
    return [
        {
            "message_id": message_id,
            "topic": topics.get(topic_id, f"(deleted topic {topic_id})"),
            "queue_id": queue_id,
            "queue_offset": queue_offset,
        }
        for message_id, topic_id, queue_id, queue_offset in zip(
            row.message_ids, row.topic_ids, row.queue_ids, offsets, strict=True
        )
    ]
