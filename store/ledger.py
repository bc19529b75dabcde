"""The ledger of progress: who is in it, and how a reader that is gone leaves it.

Its rows go with their segments, but the newest of each position is carried on: without this it would be for ever.
"""

from collections.abc import Iterable

from store import database
from store.statements import Statement

FIND_READERS = Statement(__file__, "find_readers")
DELETE_PROGRESS = Statement(__file__, "delete_progress")

MAX_ROWS_AT_ONCE = 5000


async def readers() -> set[int]:
    """Whoever has read anything, the scheduler left out."""
    return {row.reader_id for row in await database.read(FIND_READERS)}


async def forget(reader_ids: Iterable[int]) -> int:
    """Deletes rows of these readers, MAX_ROWS_AT_ONCE of each segment at most; gives their number."""
    asked = {"reader_ids": list(reader_ids), "max_rows": MAX_ROWS_AT_ONCE}
    return len(await database.read(DELETE_PROGRESS, asked))
