"""Dead letters as calls list them, with their messages, until an operator or a consumer redrives them."""

from datetime import datetime

import msgspec

from delivery import groups
from delivery.receive import deliveries
from delivery.rows import GroupFacts
from store import messages
from store.db import connections
from store.db.statements import Statement
from store.errors import require_between
from store.messages import MessageRow, StoredMessage, Time
from store.naming import topic_names
from store.naming.topics import TopicFacts
from store.process import runtime
from store.process.answer_budget import Hold


class DeadLetterEntry(MessageRow, gc=False):
    """A dead letter with its message. `letters` is the number of letters before the page was cut to its bytes.

    `bytes_before` is the size of the bodies of the letters before this letter on the page.
    """

    queue_offset: int
    reconsume_times: int
    entered_at: datetime
    letters: int
    bytes_before: int
    reason: str | None


READ_DEAD_LETTERS = Statement(__file__, "read_dead_letters", DeadLetterEntry)

DEFAULT_LISTED = 50
MAX_LISTED = 200
# A cursor of the list is cell * OFFSETS_OF_CELL + queue offset, small enough to be exact in a JSON number.
OFFSETS_OF_CELL = 2**42


class DeadLetter(msgspec.Struct):
    """A message that a group gave up; `reason` is the reason of the last nack that stated one."""

    message: StoredMessage
    queue_offset: int
    dead_at: Time
    reason: str | None


class DeadLetters(msgspec.Struct):
    """A page of dead letters; `next` is the cursor of the next page."""

    results: list[DeadLetter]
    next: int | None


async def listed(group_name: str, cursor: int, limit: int, hold: Hold) -> DeadLetters:
    """A group's dead letters that were not redriven, the oldest first, cell by cell; `next` continues the list.

    The page ends after `limit` letters, or earlier when the bodies would exceed MAX_RECEIVE_BYTES or the free bytes for
    answers of the process. The bodies count in `hold`. Raises GroupNotExist, MessageIllegal or SystemBusy.
    """
    group = await groups.existing(group_name)
    require_between("limit", limit, 1, MAX_LISTED)
    topic = await groups.dead_letter_topic(group.name)
    first, offset = divmod(cursor, OFFSETS_OF_CELL)
    left = [cell.cell for cell in runtime.cells() if cell.cell >= first]
    found = DeadLetters([], None)
    while left and not found.results:
        cell = left.pop(0)
        with runtime.in_cell(cell):
            found = await _listed_in_cell(group, topic, offset if cell == first else 0, limit, hold)
        if found.next is not None:
            found.next += cell * OFFSETS_OF_CELL
            break
        if left:
            found.next = left[0] * OFFSETS_OF_CELL
    return found


async def _listed_in_cell(
    group: GroupFacts, topic: TopicFacts, after_offset: int, limit: int, hold: Hold
) -> DeadLetters:
    await hold.room()
    page = {"from_offset": after_offset, "max_entries": limit, "max_bytes": hold.page()}
    rows = await connections.read(READ_DEAD_LETTERS, {"group_id": group.id, "topic_id": topic.id, **page})
    hold.set(sum(len(row.body) for row in rows))
    own = runtime.here().departed.left_out(rows, lambda row: (row.topic_id,))
    names = await topic_names.of_ids({row.topic_id for row in own})
    is_last = not rows or len(rows) == rows[0].letters < limit
    return DeadLetters(
        results=[_letter(row, names[row.topic_id]) for row in own],
        next=None if is_last else rows[-1].queue_offset + 1,
    )


def _letter(row: DeadLetterEntry, topic_name: str) -> DeadLetter:
    message = messages.stored(row, topic_name)
    message.reconsume_times = row.reconsume_times
    deliveries.add_retry_properties(message, topic_name, row.reconsume_times)
    return DeadLetter(message, row.queue_offset, row.entered_at, row.reason)
