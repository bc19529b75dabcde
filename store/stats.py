"""Figures of the store: how much was stored and became visible, in all and lately, told from offsets."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from store import topics
from store.db import sync
from store.db.statements import Statement
from store.models import Segment
from store.rows import EntriesSince, EverStored, LogOffsetsSince, TopicEntries

LOG_OFFSETS_SINCE = Statement(__file__, "log_offsets_since", LogOffsetsSince)
ENTRIES_SINCE = Statement(__file__, "entries_since", EntriesSince)
EVER_STORED = Statement(__file__, "ever_stored", EverStored)
ENTRIES_BY_TOPIC = Statement(__file__, "entries_by_topic", TopicEntries)

# 1,000 queues that were all written to in the last hour take some 60 ms.
MAX_QUEUES = 5000
MAX_TOPICS = 2000


@dataclass(frozen=True, slots=True)
class Stored:
    """What the store took: `kept` until now, and within each window of so many seconds.

    Counted as differences of offsets: a write that failed left a gap in those of the log, and the moments that
    neighbouring transactions overlap may belong to either side of a window's edge.
    """

    kept: int
    within: dict[int, int]


@dataclass(frozen=True, slots=True)
class Visible:
    """What became visible: entries of topics, and messages of discarded transactions in the topic of those."""

    entries: Stored
    discarded: Stored


def messages(windows: Sequence[int]) -> Stored:
    """Messages stored, half messages among them."""
    rows = sync.read(LOG_OFFSETS_SINCE, {"seconds": list(windows)})
    return Stored(
        kept=rows[0].next_offset - rows[0].lowest,
        within={row.seconds: row.next_offset - row.since_offset for row in rows},
    )


def entries(windows: Sequence[int]) -> Visible:
    """Entries of every queue but those of the delay levels, of MAX_QUEUES queues at most."""
    rows = sync.read(
        ENTRIES_SINCE,
        {
            "seconds": list(windows),
            "schedule_topic": topics.SCHEDULE,
            "discarded_topic": topics.DISCARDED,
            "max_queues": MAX_QUEUES,
        },
    )
    return Visible(
        entries=Stored(
            kept=rows[0].kept - rows[0].discarded_kept,
            within={row.seconds: row.entries - row.discarded for row in rows},
        ),
        discarded=Stored(rows[0].discarded_kept, {row.seconds: row.discarded for row in rows}),
    )


def ever_stored() -> int:
    """How many messages were ever stored, with the gaps that failed writes left."""
    return int(sync.read(EVER_STORED)[0].messages)


def entries_by_topic() -> dict[str, int]:
    """All the entries that each topic ever had, for the first MAX_TOPICS topics by name."""
    rows = sync.read(ENTRIES_BY_TOPIC, {"max_topics": MAX_TOPICS})
    return {row.topic: row.entries for row in rows}


def segments() -> dict[str, int]:
    """How many segments there are, by their state."""
    rows = Segment.objects.order_by().values_list("state").annotate(segments=Count("*"))
    return dict(rows)
