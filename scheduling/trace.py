"""The part of a message's trace that scheduling keeps: its entries and delays."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduling import delays
from scheduling.rows import EntryOfMessage, TimerOfMessage
from store.db import connections
from store.db.statements import Statement
from store.messages.times import exact
from store.reading import progress

FIND_ENTRIES_OF_MESSAGE = Statement(__file__, "find_entries_of_message", EntryOfMessage)
FIND_TIMERS_OF_MESSAGE = Statement(__file__, "find_timers_of_message", TimerOfMessage)

# The most entries, and the most timers, of a message in a trace. Each retry of a group adds two entries.
MAX_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a message. In a delay level's queue it has the level, its due time, and the topic of its release.

    An entry that the release of a timer made has the timer's due time.
    """

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
    """An unfinished delay: at a level, or in a timer (`level` is None)."""

    topic_id: int
    level: int | None
    deliver_at: datetime
    reconsume_times: int


@dataclass(frozen=True, slots=True)
class Way:
    """The last MAX_ENTRIES entries of a message in the order of time, and its unfinished delays by due time."""

    entries: list[Entry]
    waits: list[Wait]


async def of(log_offsets: Sequence[int]) -> Way:
    """The entries and delays of the message at these log offsets."""
    message = {"log_offsets": list(log_offsets)}
    # Timers are read first: a timer that is released between the two reads is in both results, instead of in none.
    timers = await connections.read(FIND_TIMERS_OF_MESSAGE, {**message, "max_timers": MAX_ENTRIES})
    limits = {"scheduler": progress.SCHEDULER, "max_entries": MAX_ENTRIES}
    rows = await connections.read(FIND_ENTRIES_OF_MESSAGE, {**message, **limits})
    entries = [_entry(row) for row in reversed(rows)]
    waits = [Wait(row.topic_id, None, exact(row.due_at), row.reconsume_times) for row in timers]
    waits += [
        Wait(entry.goes_to, entry.level, entry.deliver_at, entry.reconsume_times)
        for entry in entries
        if entry.waits and entry.goes_to is not None and entry.deliver_at is not None
    ]
    return Way(entries, sorted(waits, key=lambda wait: wait.deliver_at))


def _entry(row: EntryOfMessage) -> Entry:
    fields = (row.topic_id, row.queue_id, row.queue_offset, row.reconsume_times, row.entered_at)
    if row.real_topic_id is None:
        return Entry(*fields, deliver_at=None if row.due_at is None else exact(row.due_at))
    return Entry(
        *fields,
        level=delays.level_of(row.queue_id),
        deliver_at=exact(delays.time_of(row.due_ms)),
        goes_to=row.real_topic_id,
        waits=row.waits and not row.recalled,
    )
