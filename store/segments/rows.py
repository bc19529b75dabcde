"""The rows of the statements about segments and partitions; see `store.rows`."""

from typing import NamedTuple


class ExpiringSegment(NamedTuple):
    """A closed segment with something left to drop; `before_id` is the closed segment before it.

    `awaits_export`: retention waits for exports, and none holds it whole.
    """

    id: int
    before_id: int | None
    is_over: bool
    awaits_export: bool


class LeavingSegment(NamedTuple):
    """The segment whose log is dropped next, or NULL."""

    segment_id: int | None


class Maintenance(NamedTuple):
    """Whether this session maintains the segments now, and its limits."""

    taken: bool
    lock_timeout: str
    statement_timeout: str


class OpenSegmentState(NamedTuple):
    """The age and size of the open segment, and the next one if it is ready."""

    id: int
    open_hours: float
    messages: int
    ready_id: int | None


class Reappended(NamedTuple):
    """The old and the new log offset of a message that was appended again."""

    log_segment: int
    log_offset: int
    new_offset: int


class TableName(NamedTuple):
    """A table, by its name."""

    table_name: str


class UnreleasedQueue(NamedTuple):
    """The queue of a delay level with entries that are not released."""

    queue_id: int
