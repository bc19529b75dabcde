"""Waits: what a message went through on its way to be seen, and what it still waits for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from scheduling.rows import EntryOfMessage, TimerOfMessage
from store import progress
from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement

FIND_ENTRIES_OF_MESSAGE = Statement(__file__, "find_entries_of_message", EntryOfMessage)
FIND_TIMERS_OF_MESSAGE = Statement(__file__, "find_timers_of_message", TimerOfMessage)

# Entries and timers of one message: a retry of each group that reads its topic makes two.
MAX_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a message. One in a delay level has the level, its time, and where it goes then."""

    topic_id: int
    queue_id: int
    queue_offset: int
    reconsume_times: int
    entered_at: datetime
    level: int | None = None
    deliver_at: datetime | None = None
    goes_to: int | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A delay that is not over: at a level, or at any time (a timer)."""

    topic_id: int
    level: int | None
    deliver_at: datetime
    reconsume_times: int


@dataclass(frozen=True, slots=True)
class Way:
    """The entries of a message in the order of time, the last MAX_ENTRIES of them, and what it waits for now."""

    entries: list[Entry]
    waits: list[Wait]


async def of(log_offsets: Sequence[int]) -> Way:
    """The way of a message that lies at these log offsets."""
    asked = {"log_offsets": list(log_offsets)}
    # Timers first: one that is released in between is then told by its entry, not by neither.
    timers = await connections.read(FIND_TIMERS_OF_MESSAGE, {**asked, "max_timers": MAX_ENTRIES})
    limits = {"scheduler": progress.SCHEDULER, "max_entries": MAX_ENTRIES}
    rows = await connections.read(FIND_ENTRIES_OF_MESSAGE, {**asked, **limits})
    entries = [_entry(row) for row in reversed(rows)]
    waits = [Wait(row.topic_id, None, row.due_at, row.reconsume_times) for row in timers]
    waits += [
        Wait(entry.goes_to, entry.level, entry.deliver_at, entry.reconsume_times)
        for entry in entries
        if entry.waits and entry.goes_to is not None and entry.deliver_at is not None
    ]
    return Way(entries, sorted(waits, key=lambda wait: wait.deliver_at))


def _entry(row: Row) -> Entry:
    place = (row.topic_id, row.queue_id, row.queue_offset, row.reconsume_times, row.entered_at)
    if row.real_topic_id is None:
        return Entry(*place)
    return Entry(
        *place,
        level=row.queue_id + 1,
        deliver_at=datetime.fromtimestamp(row.due_ms / 1000, UTC),
        goes_to=row.real_topic_id,
        waits=row.waits and not row.recalled,
    )
