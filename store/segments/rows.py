"""The rows of the statements about segments and partitions; see `store.rows`."""

from typing import NamedTuple


class ExpiringSegment(NamedTuple):
    """A closed segment that is not dropped completely. `before_id` is the closed segment before it.

    `awaits_export`: retention waits for exports, and no export holds the segment whole.
    """

    id: int
    before_id: int | None
    is_over: bool
    awaits_export: bool
