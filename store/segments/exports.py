"""Exports as retention knows them: which segments an export holds whole, and which it dropped without one.

The export notes itself in PostgreSQL when the list of its files is in place, never before. Retention reads that row, so
an export that is killed at any moment keeps what it has not finished.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec
import structlog
from django.conf import settings

from store.db import connections, sync
from store.db.connections import Connection
from store.db.statements import Statement
from store.segments.rows import ExpiringSegment

logger = structlog.stdlib.get_logger(__name__)


class Exported(NamedTuple):
    """An export in its folder, the rows of each of its tables as JSON, and how far the broker has gone on since."""

    target: str
    taken_at: datetime
    finished_at: datetime
    counts: str
    seconds_behind: float
    messages_behind: int

    @property
    def rows(self) -> Mapping[str, int]:
        """The rows of each of its tables."""
        return msgspec.json.decode(self.counts, type=dict[str, int])

    @property
    def transactions(self) -> int:
        """Those that were ended, and those that were not."""
        return self.rows["transactions"] + self.rows["transactions_open"]


class ExportWait(NamedTuple):
    """The closed segments that are in no export, and the segments that were dropped before one."""

    waiting: int
    dropped: int
    last_dropped_at: datetime | None


class Size(NamedTuple):
    """What all segments take on disk."""

    bytes: int


# For the export's own connection.
NOTE_EXPORT = Statement(__file__, "note_export")
FORGET_EXPORTS = Statement(__file__, "forget_exports")
FIND_EXPORTS = Statement(__file__, "find_exports", Exported)
FIND_EXPORT_WAIT = Statement(__file__, "find_export_wait", ExportWait)
MARK_UNEXPORTED = Statement(__file__, "mark_unexported")
SIZE_OF_SEGMENTS = Statement(__file__, "size_of_segments", Size)

# Folders of which the latest export is kept in mind, and of these the ones that are shown.
MAX_KEPT = 100
MAX_SHOWN = 10


def awaited() -> dict[str, object]:
    """What retention waits for, as FIND_EXPIRING_SEGMENTS wants it."""
    return {"until_exported": settings.RETAIN_UNTIL_EXPORTED, "target": settings.EXPORT_NIGHTLY_TO}


async def must_wait(segment: ExpiringSegment) -> bool:
    """Whether a segment whose time is over is kept for an export: until the segments take more than they may."""
    if not segment.awaits_export:
        return False
    [size] = await connections.read(SIZE_OF_SEGMENTS)
    return size.bytes <= settings.RETAIN_UNTIL_EXPORTED_MAX_BYTES


async def give_up(connection: Connection, segment_id: int) -> None:
    """Notes and logs that a segment is dropped before an export holds it."""
    await connections.execute(connection, MARK_UNEXPORTED, {"segment_id": segment_id})
    logger.warning(
        "a segment is dropped before its export",
        segment=segment_id,
        max_bytes=settings.RETAIN_UNTIL_EXPORTED_MAX_BYTES,
    )


def latest() -> list[Exported]:
    """The latest exports, the newest first, one per folder."""
    return list(sync.read(FIND_EXPORTS, {"max_rows": MAX_SHOWN}))


def wait() -> ExportWait:
    """What waits for an export, and what did not get one."""
    [found] = sync.read(FIND_EXPORT_WAIT, {"target": settings.EXPORT_NIGHTLY_TO})
    return found


def taken_bytes() -> int:
    """What all segments take on disk."""
    [size] = sync.read(SIZE_OF_SEGMENTS)
    return size.bytes
