"""Exports as retention sees them: the segments that an export holds whole, and segments dropped before an export.

An export writes its row in PostgreSQL when its manifest is in place, never before. Retention reads this row, so if an
export is killed at any moment, the segments that it has not finished are kept.
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
from store.rows import ExpiringSegment, ExportWait

logger = structlog.stdlib.get_logger(__name__)


class Exported(NamedTuple):
    """An export in its folder, the number of rows by table as JSON, and how many messages came later."""

    target: str
    taken_at: datetime
    finished_at: datetime
    counts: str
    seconds_behind: float
    messages_behind: int

    @property
    def rows(self) -> Mapping[str, int]:
        """The number of rows by table."""
        return msgspec.json.decode(self.counts, type=dict[str, int])

    @property
    def transactions(self) -> int:
        """The number of transactions in the export, ended or not."""
        return self.rows["transactions"] + self.rows["transactions_open"]


# The export executes this statement on its own connection.
NOTE_EXPORT = Statement(__file__, "note_export")
FORGET_EXPORTS = Statement(__file__, "forget_exports")
FIND_EXPORTS = Statement(__file__, "find_exports", Exported)
FIND_EXPORT_WAIT = Statement(__file__, "find_export_wait", ExportWait)
MARK_UNEXPORTED = Statement(__file__, "mark_unexported")
SIZE_OF_SEGMENTS = Statement(__file__, "size_of_segments", one=int)

# The maximum number of rows in the table, which has the latest export of each folder, and how many of them are shown.
MAX_KEPT = 100
MAX_SHOWN = 10


def awaited() -> dict[str, object]:
    """The parameters of FIND_EXPIRING_SEGMENTS about exports."""
    return {"until_exported": settings.RETAIN_UNTIL_EXPORTED, "target": settings.EXPORT_NIGHTLY_TO}


async def must_wait(segment: ExpiringSegment) -> bool:
    """Whether a segment whose time is over is kept for an export: until all segments exceed their limit on disk."""
    if not segment.awaits_export:
        return False
    [size] = await connections.read(SIZE_OF_SEGMENTS)
    return size <= settings.RETAIN_UNTIL_EXPORTED_MAX_BYTES


async def give_up(connection: Connection, segment_id: int) -> None:
    """Notes in the segment's row, and logs, that retention drops the segment before an export holds it."""
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
    """The number of segments that wait for an export, and the number of segments that were dropped without one."""
    [found] = sync.read(FIND_EXPORT_WAIT, {"target": settings.EXPORT_NIGHTLY_TO})
    return found


def taken_bytes() -> int:
    """The bytes of all segments on disk."""
    [size] = sync.read(SIZE_OF_SEGMENTS)
    return size
