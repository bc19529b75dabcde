"""Reappend: a message that is still needed is stored again in the open segment, before its own segment is dropped."""

from collections.abc import Collection

from store.commit.batch import Batch
from store.db.statements import Statement
from store.rows import Reappended
from store.segments.log import LogPosition

APPEND_AGAIN = Statement(__file__, "append_again")
FIND_AGAIN = Statement(__file__, "find_again", Reappended)

# The most bytes of bodies that one statement appends, far fewer than its time limit allows.
MAX_BYTES = 16 * 1024 * 1024


async def append_again(
    batch: Batch, positions: Collection[LogPosition], max_bytes: int = MAX_BYTES
) -> dict[LogPosition, int]:
    """Appends stored messages to the batch's segment. Returns the new log offset by old log position.

    A call appends at least one message and about `max_bytes` of bodies; positions that are not in the answer need
    another call. A message keeps its id and the time at which it was first stored.
    """
    columns = {"log_segment": [segment for segment, _ in positions], "log_offset": [offset for _, offset in positions]}
    await batch.read(APPEND_AGAIN, {"segment_id": batch.segment_id, "max_bytes": max_bytes, **columns})
    # A separate statement also sees messages that another process has appended in between.
    rows = await batch.read(FIND_AGAIN, {"segment_id": batch.segment_id, **columns})
    return {(row.log_segment, row.log_offset): row.new_offset for row in rows}


async def near(batch: Batch, positions: Collection[LogPosition]) -> dict[LogPosition, LogPosition]:
    """Returns for each log position another position of the same message to which entries of the open segment may
    point.

    This position is in the open segment or in the segment before; messages in older segments are appended again. Raises
    LookupError when a body is gone.
    """
    found = {position: position for position in positions if position[0] >= batch.segment_id - 1}
    far = set(positions) - found.keys()
    while far:
        offsets = await append_again(batch, far)
        if not offsets:
            segment, offset = min(far)
            raise LookupError(f"The body at {offset} of segment {segment} is gone.")
        found |= {position: (batch.segment_id, offset) for position, offset in offsets.items()}
        far -= offsets.keys()
    return found
