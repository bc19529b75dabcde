"""Bodies that outlive their segment: a message that is still needed is appended again before its log goes."""

from collections.abc import Collection, Sequence
from typing import Protocol

from store.commit.batch import Batch
from store.db.statements import Statement
from store.rows import Reappended

APPEND_AGAIN = Statement(__file__, "append_again")
FIND_AGAIN = Statement(__file__, "find_again", Reappended)

# One statement appends so much at most: far below what its time limit allows.
MAX_BYTES = 16 * 1024 * 1024

# Where a message lies: its segment and its log offset.
Place = tuple[int, int]


class Located(Protocol):
    """Whatever says where a message lies."""

    log_segment: int
    log_offset: int


async def append_again(batch: Batch, places: Collection[Place], max_bytes: int = MAX_BYTES) -> dict[Place, int]:
    """Appends stored messages to the batch's segment; gives the new log offset of each old place.

    At least one message and about `max_bytes` of bodies at a time: whoever gives more places asks again for the others.
    A message keeps its id and the time it was first stored at.
    """
    columns = {"log_segment": [segment for segment, _ in places], "log_offset": [offset for _, offset in places]}
    await batch.read(APPEND_AGAIN, {"segment_id": batch.segment_id, "max_bytes": max_bytes, **columns})
    # A new statement also sees what another process appended in between.
    rows = await batch.read(FIND_AGAIN, {"segment_id": batch.segment_id, **columns})
    return {(row.log_segment, row.log_offset): row.new_offset for row in rows}


async def keep_near(batch: Batch, located: Sequence[Located]) -> None:
    """Has each message lie in the open segment or the one before, where an entry of the batch may point.

    Raises LookupError when a body is gone.
    """
    far = [one for one in located if one.log_segment < batch.segment_id - 1]
    while far:
        offsets = await append_again(batch, {(one.log_segment, one.log_offset) for one in far})
        if not offsets:
            raise LookupError(f"The body at {far[0].log_offset} of segment {far[0].log_segment} is gone.")
        for one in far:
            if (one.log_segment, one.log_offset) in offsets:
                one.log_offset = offsets[one.log_segment, one.log_offset]
                one.log_segment = batch.segment_id
        far = [one for one in far if one.log_segment < batch.segment_id - 1]
