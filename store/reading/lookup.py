"""Look-up: a stored message by its id, and reads that all look-ups share."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from store.db import connections
from store.db.statements import Statement
from store.errors import MessageNotFound
from store.messages import MessageRow, counted
from store.messages.counted import Counted
from store.naming import topics
from store.process.answer_budget import Hold
from store.process.budget import SMALL_BYTES
from store.reading import holders
from store.reading.holders import FIND_COPIES
from store.rows import Copy, FirstEntry
from store.segments import log
from store.segments.log import LogPosition

FIND_FIRST_ENTRIES = Statement(__file__, "find_first_entries", FirstEntry)
FIND_VISIBLE_ENTRY = Statement(__file__, "find_visible_entry", one=int)

# The most copies of a message in the log: it is appended again at most once for each segment that is kept.
MAX_COPIES = 64
# The most bytes of bodies on one page.
MAX_PAGE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Found:
    """A stored message, and its first entry in its topic. `queue_offset` is None while it has no entry."""

    message: MessageRow
    queue_id: int
    queue_offset: int | None
    counted: Counted


async def find_copies(message_id: uuid.UUID) -> Sequence[Copy]:
    """The log positions of a message, the oldest first; empty if the message was never stored, or was dropped."""
    async with holders.of_message(message_id):
        return (await connections.read(FIND_COPIES, {"message_id": message_id, "max_copies": MAX_COPIES}))[::-1]


async def copies(message_id: uuid.UUID) -> Sequence[Copy]:
    """The log positions of a message, the oldest first.

    Raises MessageNotFound if there are none.
    """
    if not (found := await find_copies(message_id)):
        raise not_found(message_id)
    return found


async def by_id(message_id: uuid.UUID, hold: Hold) -> Found:
    """The message with this id, visible or not. The bytes of its body count in `hold`.

    Raises MessageNotFound, or SystemBusy while too many bytes of answers are in flight.
    """
    async with holders.of_message(message_id):
        newest = (await copies(message_id))[-1]
        await fitting([newest.body_bytes], 1, hold)
        messages = await messages_at([(newest.segment_id, newest.log_offset)])
        if not messages:
            raise not_found(message_id)
        # An entry in a topic of the broker's own is never a sent message, so the entry has a count of retries.
        return (await with_first_entries(messages, newest.topic_id, ""))[0]


async def is_visible(message_id: uuid.UUID) -> bool:
    """Whether consumers can see the message: it has an entry in a topic that they read, or as a dead letter."""
    parameters = {"message_id": message_id, "hidden": list(topics.HIDDEN)}
    async with holders.of_message(message_id):
        return bool(await connections.read(FIND_VISIBLE_ENTRY, parameters))


async def fitting(sizes: Sequence[int], count: int, hold: Hold) -> int:
    """The number of bodies, of the first `count`, that fit into one page; at least one. Waits for room for the page.

    Their bytes count in `hold` from now on. Raises SystemBusy if no room gets free.
    """
    await hold.room(may_be_small=sum(sizes[:count]) <= SMALL_BYTES)
    most = min(MAX_PAGE_BYTES, hold.page_bytes)
    ends = list(accumulate(sizes[:count]))
    fitting = max(1, sum(end <= most for end in ends))
    hold.set(sum(sizes[: min(fitting, count)]))
    return fitting


async def messages_at(positions: Sequence[LogPosition]) -> list[MessageRow]:
    """The messages at these log positions, in the given order, without messages whose segment was just dropped."""
    read = await connections.read(log.READ_MESSAGES, log.at(positions)) if positions else ()
    found = {(message.segment_id, message.log_offset): message for message in read}
    return [found[position] for position in positions if position in found]


async def with_first_entries(messages: Sequence[MessageRow], topic_id: int, topic: str) -> list[Found]:
    ids = [message.message_id for message in messages]
    rows = await connections.read(FIND_FIRST_ENTRIES, {"message_ids": ids, "topic_id": topic_id}) if ids else ()
    entries = {row.message_id: row for row in rows}
    found = []
    for message in messages:
        entry = entries.get(message.message_id)
        if entry is None:
            found.append(Found(message, message.queue_id, None, counted.of(topic, 0)))
        else:
            count = counted.of(topic, entry.reconsume_times)
            found.append(Found(message, entry.queue_id, entry.queue_offset, count))
    return found


def not_found(message_id: uuid.UUID) -> MessageNotFound:
    """The refusal for an id without a stored message."""
    return MessageNotFound(f"There is no message {message_id}: it was never stored, or retention has deleted it.")
