"""Figures of the store: how much was stored and became visible, in all and lately, told from offsets."""

from collections.abc import Sequence
from dataclasses import dataclass

from store import blocking, topics
from store.statements import Statement

LOG_OFFSETS_SINCE = Statement(__file__, "log_offsets_since")
ENTRIES_SINCE = Statement(__file__, "entries_since")

# 1,000 queues that were all written to in the last hour take some 0.2 s.
MAX_QUEUES = 5000


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
    """What became visible: entries of the topics, and the messages of discarded transactions in a topic of their own."""

    entries: Stored
    discarded: Stored


def messages(windows: Sequence[int]) -> Stored:
    """Messages stored, half messages among them."""
    rows = blocking.read(LOG_OFFSETS_SINCE, {"seconds": list(windows)})
    return Stored(
        kept=rows[0].next_offset - rows[0].lowest,
        within={row.seconds: row.next_offset - row.since_offset for row in rows},
    )


def entries(windows: Sequence[int]) -> Visible:
    """Entries of every queue but those of the delay levels, of MAX_QUEUES queues at most."""
    rows = blocking.read(
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
