"""Turns in an ordered group: keys take turns within each queue, and entries that are read ahead are parked until their
turn.

A fair group that is not ordered keeps waiting entries in runs (`turns`). An ordered fair group parks a receipt for each
entry, as an ordered group does behind a failed message.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from delivery.groups import MAX_ENTRIES_READ, QueueProgress
from delivery.receive import selection
from delivery.receive.deliveries import HandedOut, Receiver
from delivery.receive.filtering import Filtering
from delivery.retries import ordered
from delivery.retries.ordered import OrderedQueue
from delivery.retries.rounds import LastKeys, by_turns
from store.commit.batch import Batch
from store.process import runtime
from store.queues import Queue
from store.reading import progress
from store.rows import Head

# The number of entries that a group may read ahead of a queue's first waiting entry. Then it reads no new entry.
MAX_AHEAD = 100_000


async def from_queue_by_turns(
    batch: Batch,
    receiver: Receiver,
    its_filter: Filtering,
    queue: Queue,
    from_queue: OrderedQueue,
    reached: QueueProgress,
) -> list[HandedOut]:
    """Like `selection.from_queue_in_order`, but keys take turns, and entries that wait for a turn are parked."""
    last_keys, group_id = runtime.part(LastKeys), receiver.group.id
    after = last_keys.of(group_id, queue)
    await ordered.choose_again(batch, group_id, queue, from_queue, receiver.max_messages, after)
    again = [selection.chosen_again(batch, receiver, queue, receipt) for receipt in from_queue.again]
    served = [receipt.sharding_key for receipt in from_queue.again]
    heads: list[Head] = []
    its_filter.resume()
    for head in await _entries_ahead(batch, queue, from_queue, reached):
        if not await its_filter.goes_on():
            break
        reached.pass_over(head.queue_offset)
        if its_filter.takes(head):
            heads.append(head)
    waiting = {receipt.sharding_key for receipt in from_queue.receipts}
    fresh = [head for head in heads if _key_of(head) not in waiting]
    room = Room(from_queue.room_behind_again(receiver.max_messages), receiver.hold.page_bytes)
    rooms = from_queue.rooms
    await rooms.read(batch, map(_key_of, fresh))
    chosen = [
        head
        for head in by_turns(fresh, _key_of, after)
        if rooms.has(_key_of(head)) and room.takes(head) and rooms.take(_key_of(head), queue, head.queue_offset)
    ]
    offsets = {head.queue_offset for head in chosen}
    for head in heads:
        if head.queue_offset not in offsets:
            batch.insert(selection.INSERT_RECEIPTS, selection.receipt_of(receiver, head, "parked", 0))
    served += map(_key_of, chosen)
    if served:
        batch.after_commit(partial(last_keys.keep, group_id, queue, served[-1]))
    return [*again, *(selection.handed_out(batch, receiver, head) for head in chosen)]


def _key_of(head: Head) -> str:
    return head.sharding_key or ordered.NO_KEY


@dataclass(slots=True)
class Room:
    """The messages and bytes of bodies that a receive may still take. The last message may exceed the bytes."""

    messages: int
    size: int

    def takes(self, head: Head) -> bool:
        """Takes a message if there is room, and returns whether it did. After a message without room none is taken."""
        if self.messages <= 0 or self.size <= 0:
            self.messages = 0
            return False
        self.messages -= 1
        self.size -= head.body_bytes
        return True


async def _entries_ahead(
    batch: Batch, queue: Queue, from_queue: OrderedQueue, reached: QueueProgress
) -> Sequence[Head]:
    """The heads of the entries that a fair group reads ahead; none when the whole queue has to wait."""
    is_far = reached.next_offset - from_queue.lowest(reached.next_offset) >= MAX_AHEAD
    if from_queue.all_blocked or from_queue.is_full or is_far or reached.lag <= 0:
        return ()
    return await progress.heads(batch, [queue], [reached.next_offset], [min(MAX_ENTRIES_READ, reached.lag)])
