"""Lists undecided transactions: pending ones by their next check, discarded ones by the time of the discard."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from store.cells import cells
from store.db import sync
from store.db.statements import Statement
from store.reading import merging
from store.reading.merging import Part
from transactions.reads import listing
from transactions.reads.listing import Page, Wanted
from transactions.rows import TransactionRow

COUNT_LISTED = Statement(__file__, "count_listed", one=int)
LIST_DISCARDED = Statement(__file__, "list_discarded", TransactionRow)
LIST_DUE_HALVES = Statement(__file__, "list_due_halves", TransactionRow)


class DiscardedCursor(NamedTuple):
    """Where a page of discarded transactions begins: after a time of discard and an id."""

    discarded_at: datetime = datetime.max.replace(tzinfo=UTC)
    transaction_id: uuid.UUID = uuid.UUID(int=2**128 - 1)


def discarded(
    wanted: Wanted,
    since: datetime | None,
    until: datetime | None,
    after: Mapping[int, DiscardedCursor] | None,
    count: int,
) -> Page[DiscardedCursor]:
    """The latest `count` transactions that were discarded from `since` on and before `until`, the latest first."""
    asked = {**listing.parameters(wanted), "since": since, "until": until}

    def read(cursor: DiscardedCursor, most: int) -> Part[TransactionRow, DiscardedCursor]:
        at = {"before": cursor.discarded_at, "before_id": cursor.transaction_id, "max_rows": most + 1}
        return listing.up_to(most, sync.read(LIST_DISCARDED, {**asked, **at}), _discarded_cursor)

    cursors = merging.from_start(DiscardedCursor()) if after is None else after
    return listing.summarized(merging.page(read, cursors, count, lambda _, cursor: cursor, listing.topics_of))


def _discarded_cursor(row: TransactionRow) -> DiscardedCursor:
    assert row.decided_at is not None
    return DiscardedCursor(row.decided_at, row.transaction_id)


class DueCursor(NamedTuple):
    """Where a page of pending transactions begins: after the time of a next check and an id."""

    next_check_at: datetime = datetime.min.replace(tzinfo=UTC)
    transaction_id: uuid.UUID = uuid.UUID(int=0)


def due(
    wanted: Wanted, after: Mapping[int, DueCursor] | None, count: int, passed_over: Sequence[int] = ()
) -> Page[DueCursor]:
    """The first `count` pending transactions, the earliest next check first. Leaves out the groups with
    these ids.
    """
    asked = {**listing.parameters(wanted), "passed_over": list(passed_over)}

    def read(cursor: DueCursor, most: int) -> Part[TransactionRow, DueCursor]:
        at = {"after": cursor.next_check_at, "after_id": cursor.transaction_id, "max_rows": most + 1}
        return listing.up_to(most, sync.read(LIST_DUE_HALVES, {**asked, **at}), _due_cursor)

    cursors = merging.from_start(DueCursor()) if after is None else after
    return listing.summarized(
        merging.page(read, cursors, count, lambda _, cursor: cursor, listing.topics_of, descending=False)
    )


def _due_cursor(row: TransactionRow) -> DueCursor:
    assert row.next_check_at is not None
    return DueCursor(row.next_check_at, row.transaction_id)


def count(wanted: Wanted, max_count: int) -> int:
    """The number of transactions that match, in the wanted state PREPARED or DISCARDED, up to `max_count`."""
    limits = {"discarded": wanted.state == "DISCARDED", "max_count": max_count}
    asked = {**listing.parameters(wanted), **limits}
    return min(sum(cells.ask(lambda: sync.read(COUNT_LISTED, asked)[0]).values()), max_count)
