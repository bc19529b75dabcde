"""The rows that the export reads by SQL: one type per shape, its fields the columns in their order.

What Spark reads has its schema in analytics.tables.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Backend(NamedTuple):
    """The server's process of a session, and the port of its client; None by a Unix socket."""

    pid: int
    port: int | None


class Count(NamedTuple):
    """The rows of a closed range that are there, and how many of them an export must hold."""

    there: int
    counted: int


class DatabaseName(NamedTuple):
    """What names the database among all: the server's identifier and the database's number."""

    name: str


class EndedCount(NamedTuple):
    """The transactions of a segment that were ended in one way."""

    segment: int
    state: str
    transactions: int


class EntryBounds(NamedTuple):
    """The first and last offset of a queue in one segment."""

    topic_id: int
    queue_id: int
    first_offset: int
    last_offset: int


class Held(NamedTuple):
    """The lock of the log, held alone by a session."""

    pg_advisory_lock: None


class Released(NamedTuple):
    """Whether the session held the lock that it released."""

    pg_advisory_unlock: bool


class Estimate(NamedTuple):
    """About how many messages the broker keeps."""

    messages: int


class SegmentBounds(NamedTuple):
    """The first and last offset of a segment's messages and of its operations; None where it holds none."""

    first_log_offset: int | None
    last_log_offset: int | None
    first_operation_id: int | None
    last_operation_id: int | None


class SegmentState(NamedTuple):
    """A segment that is open or closed, and the time of the snapshot."""

    id: int
    state: str
    taken_at: datetime


class SnapshotName(NamedTuple):
    """The name by which other sessions take a snapshot."""

    pg_export_snapshot: str


class StoredMessage(NamedTuple):
    """The message at a log offset, if it is there, and whether its segment holds any."""

    message_id: UUID | None
    is_kept: bool


class TakenTarget(NamedTuple):
    """Whether this session has the folder of an export for itself."""

    taken: bool


class Undecided(NamedTuple):
    """The half messages, the check attempts and the timers that a snapshot holds."""

    halves: int
    checks: int
    timers: int
