"""Previews of stored messages for pages: the heads of many, or the first bytes of a few; never a whole body."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from store.cells import cells
from store.db import sync
from store.db.statements import Statement
from store.naming import topic_names
from store.process import runtime
from store.reading import merging
from store.reading.merging import Part
from store.reading.search import BEYOND, MAX_OF_KEY
from store.rows import KeyHead, KeysOfMessage, NewestEntry, Preview
from store.segments import log

Named = TypeVar("Named", KeyHead, Preview)

FIND_BY_KEY_ANYWHERE = Statement(__file__, "find_by_key_anywhere", KeyHead)
KEYS_OF_MESSAGES = Statement(__file__, "keys_of_messages", KeysOfMessage)
NEWEST_ENTRIES = Statement(__file__, "newest_entries", NewestEntry)
PREVIEW_MESSAGES = Statement(__file__, "preview_messages", Preview)


def newest(topic_id: int, queue_id: int, below: int | None, count: int) -> Sequence[NewestEntry]:
    """The newest `count` entries of a queue, newest first; with `below`, only entries below this offset."""
    asked = {"topic_id": topic_id, "queue_id": queue_id, "below": BEYOND if below is None else below}
    return sync.read(NEWEST_ENTRIES, {**asked, "max_rows": count})


def at(positions: Mapping[UUID, tuple[int, int]], max_bytes: int) -> dict[UUID, Preview]:
    """The messages at these log positions with at most `max_bytes` of each body, without messages of dropped segments.

    The ids are needed because another cell may have another message at the same position.
    """
    if not positions:
        return {}
    asked = {**log.at(list(positions.values())), "max_bytes": max_bytes}
    found = cells.ask(lambda: sync.read(PREVIEW_MESSAGES, asked))
    rows = (row for rows in found.values() for row in rows)
    return {
        row.message_id: _named(row) for row in rows if positions.get(row.message_id) == (row.segment_id, row.log_offset)
    }


def keys(positions: Iterable[tuple[int, int]]) -> dict[tuple[int, int], list[str]]:
    """The keys of messages by cell and log offset, for messages that have keys."""
    offsets: dict[int, list[int]] = {}
    for cell, log_offset in positions:
        offsets.setdefault(cell, []).append(log_offset)
    found = cells.ask(lambda: sync.read(KEYS_OF_MESSAGES, {"log_offset": offsets[runtime.here().cell]}), only=offsets)
    return {(cell, row.log_offset): row.keys for cell, rows in found.items() for row in rows}


@dataclass(frozen=True, slots=True)
class OfKey:
    """The newest messages with a key. `too_many`: a cell was left out, because more than MAX_OF_KEY of its messages
    have the key.
    """

    heads: list[KeyHead]
    too_many: bool


def of_key(key: str, topic_id: int | None, count: int) -> OfKey:
    """The newest `count` messages with this key, visible or not, in one topic, or with None in all topics."""
    limits = {"key": key, "topic_id": topic_id, "max_looked_at": MAX_OF_KEY + 1, "max_rows": count}
    looked_at: list[int] = []

    def read(_: None, most: int) -> Part[KeyHead, None]:
        rows = sync.read(FIND_BY_KEY_ANYWHERE, limits)
        looked_at.append(rows[0].looked_at)
        return Part([(_named(row), None) for row in rows if row.message_id is not None], None)

    page = merging.page(
        read, merging.from_start(None), count, lambda head, _: head.stored_at, lambda head: (head.topic_id,)
    )
    return OfKey(page.rows, max(looked_at) > MAX_OF_KEY)


def _named(row: Named) -> Named:
    """The row, with a text in place of the name if its topic was deleted."""
    if row.topic is None and row.topic_id is not None:
        return row._replace(topic=topic_names.deleted(row.topic_id))
    return row
