"""Ordered groups: a queue has deliveries of one receive in flight, and a failed message delays only its followers.

A failed message stays in its queue, with its receipt held. Later messages of its sharding key are parked behind it;
messages of other keys are handed out. A failed message without a sharding key stops its whole queue.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from delivery.groups import MAX_ENTRIES_READ, QueueProgress
from delivery.limits.rooms import Rooms
from delivery.retries import redelivery
from delivery.retries.floors import Floors
from delivery.retries.redelivery import Failed
from delivery.retries.rounds import by_turns
from delivery.rows import FailedReceipt, OrderedReceipt
from scheduling.publish import publish
from store.commit.batch import Batch
from store.db.statements import Statement
from store.process import runtime
from store.queues import Queue
from store.reading import progress
from store.rows import Head

GIVE_UP_RECEIPTS = Statement(__file__, "give_up_receipts")
HAND_OUT_AGAIN = Statement(__file__, "hand_out_again")
HOLD_RECEIPTS = Statement(__file__, "hold_receipts")
READ_ORDERED_RECEIPTS = Statement(__file__, "read_ordered_receipts", OrderedReceipt)
READ_RECEIPTS_OF_KEYS = Statement(__file__, "read_receipts_of_keys", OrderedReceipt)

# The sharding key in the receipt of a message without a sharding key. A real key is never empty.
NO_KEY = ""
# The most keys that may wait in a queue; beyond this the whole queue waits. A receive probes each waiting key, in about
# 10 µs. Any number of messages may be parked behind a key: a parked receipt is not read before its turn.
MAX_WAITING_KEYS = 1000
# The most receipts of a queue that are read, more than a queue can have waiting keys and deliveries in flight: a
# message whose receipt is not read would be overtaken.
MAX_RECEIPTS = 10 * MAX_WAITING_KEYS


@dataclass(slots=True)
class OrderedQueue:
    """A queue of an ordered group while a receive chooses from it.

    `receipts`, by offset: the receipts in flight, and the first held or parked receipt of each key. `again`: the
    receipts that are handed out again.
    """

    receipts: list[OrderedReceipt] = field(default_factory=list)
    blocked_keys: set[str | None] = field(default_factory=set)
    all_blocked: bool = False
    again: list[OrderedReceipt] = field(default_factory=list)
    # How many more messages of each value the group's limits allow.
    rooms: Rooms = field(default_factory=Rooms)

    @property
    def is_busy(self) -> bool:
        """Whether deliveries of the queue are in flight."""
        return any(receipt.state == "flight" and receipt.waits for receipt in self.receipts)

    @property
    def is_full(self) -> bool:
        """Whether MAX_WAITING_KEYS keys wait, so that no new entry may be read."""
        return len(self.receipts) >= MAX_WAITING_KEYS

    def lowest(self, next_offset: int) -> int:
        """The offset of the queue's first receipt; without receipts the group's next offset."""
        if len(self.receipts) >= MAX_RECEIPTS:
            # The limit of the read was reached, so there may be unread receipts with lower offsets.
            return 0
        return self.receipts[0].queue_offset if self.receipts else next_offset

    def is_blocked(self, key: str | None) -> bool:
        """Whether a message of this sharding key has to wait."""
        return self.all_blocked or key in self.blocked_keys

    def room_behind_again(self, wanted: int) -> int:
        """The number of messages that may be handed out in addition to `again`; 0 when `again` is a retry.

        A retry is handed out alone, so that a message that kills its consumer does not fail other messages.
        """
        is_retry = any(receipt.reconsume_times > 0 for receipt in self.again[:1])
        return 0 if is_retry else wanted - len(self.again)

    def choose_again(self, receipts: Iterable[OrderedReceipt], wanted: int, *, is_fair: bool) -> None:
        """Chooses, in order, the receipts that are due; a receipt that is not chosen blocks its key.

        A retry is chosen alone. A receipt without a key blocks the whole queue, but not in a fair group while it only
        waits for its turn.
        """
        for receipt in receipts:
            if self.is_blocked(receipt.sharding_key):
                continue
            has_room = not self.again if receipt.reconsume_times > 0 else self.room_behind_again(wanted) > 0
            if _is_due(receipt) and has_room and self._takes(receipt):
                self.again.append(receipt)
            elif receipt.sharding_key == NO_KEY and not (is_fair and receipt.state == "parked"):
                self.all_blocked = True
            else:
                self.blocked_keys.add(receipt.sharding_key)

    def _takes(self, receipt: OrderedReceipt) -> bool:
        return self.rooms.take(receipt.sharding_key, (receipt.topic_id, receipt.queue_id), receipt.queue_offset)


def _is_due(receipt: OrderedReceipt) -> bool:
    return receipt.state == "parked" or (receipt.state == "held" and not receipt.waits)


async def read_queues(batch: Batch, group_id: int, reached: Mapping[Queue, QueueProgress]) -> dict[Queue, OrderedQueue]:
    """The queues with the group's receipts. The caller holds the locks of the group's progress in the queues."""
    floors = runtime.part(Floors)
    known = [floors.of(group_id, queue, at) for queue, at in reached.items()]
    parameters = {
        "group_id": group_id,
        "topic_id": [topic_id for topic_id, _ in reached],
        "queue_id": [queue_id for _, queue_id in reached],
        "floor": [floor.offset for floor in known],
        "floor_move": [floor.move for floor in known],
        "max_receipts": MAX_RECEIPTS,
    }
    found: dict[Queue, OrderedQueue] = {queue: OrderedQueue() for queue in reached}
    for receipt in await batch.read(READ_ORDERED_RECEIPTS, parameters):
        found[receipt.topic_id, receipt.queue_id].receipts.append(receipt)
    lowest = {queue: found[queue].lowest(at.next_offset) for queue, at in reached.items()}
    floors.keep(batch, group_id, lowest, {queue: at.move for queue, at in reached.items()})
    return found


async def choose_again(
    batch: Batch, group_id: int, queue: Queue, ordered: OrderedQueue, wanted: int, after: str | None = None
) -> None:
    """Chooses the receipts that are handed out again: due first receipts of keys, and receipts that follow in the key.

    At most `wanted` keys are read, and of each key one receipt more than may be handed out, which then blocks the key.
    In a fair group (`after` is not None) keys take turns, from the key after `after` on.
    """
    firsts = ordered.receipts if after is None else by_turns(ordered.receipts, _key, after)
    due = [receipt for receipt in firsts if _is_due(receipt)]
    await ordered.rooms.read(batch, map(_key, due))
    due = [receipt for receipt in due if ordered.rooms.has(receipt.sharding_key)][:wanted]
    following: Sequence[OrderedReceipt] = ()
    if due:
        parameters = {
            "group_id": group_id,
            "topic_id": queue[0],
            "queue_id": queue[1],
            "sharding_key": [receipt.sharding_key for receipt in due],
            "after_offset": [receipt.queue_offset for receipt in due],
            "max_receipts": wanted,
        }
        following = await batch.read(READ_RECEIPTS_OF_KEYS, parameters)
    receipts = sorted([*ordered.receipts, *following], key=attrgetter("queue_offset"))
    if after is not None:
        receipts = by_turns(receipts, _key, after)
    ordered.choose_again(receipts, wanted, is_fair=after is not None)


def _key(receipt: OrderedReceipt) -> str:
    return receipt.sharding_key


async def new_entries(
    batch: Batch, queue: Queue, ordered: OrderedQueue, reached: QueueProgress, count: int
) -> Sequence[Head]:
    """The heads of entries that the group was not handed yet; none when the whole queue has to wait.

    Reads more than `count` heads if some keys have to wait.
    """
    if ordered.all_blocked or ordered.is_full or count <= 0:
        return ()
    count = max(count, min(MAX_ENTRIES_READ, reached.lag)) if ordered.blocked_keys else count
    return await progress.heads(batch, [queue], [reached.next_offset], [count])


def hand_out_again(batch: Batch, group_id: int, receipt: OrderedReceipt, nonce: int, invisible_seconds: float) -> None:
    """Puts a held or parked receipt in flight, as a new delivery with this nonce."""
    batch.insert(
        HAND_OUT_AGAIN,
        {
            "group_id": group_id,
            "topic_id": receipt.topic_id,
            "queue_id": receipt.queue_id,
            "queue_offset": receipt.queue_offset,
            "nonce": nonce,
            "invisible_seconds": invisible_seconds,
        },
    )


async def hold(batch: Batch, receipt: FailedReceipt, delay_seconds: float | None = None) -> None:
    """Holds a failed message in its queue until its retry is due, or publishes it as a dead letter.

    `delay_seconds`: the delay that the consumer asked for; None: by the group's retry policy.
    """
    failed = Failed(receipt)
    if failed.delay is None:
        await give_up(batch, receipt)
    else:
        wait = failed.delay_seconds if delay_seconds is None else delay_seconds
        batch.insert(HOLD_RECEIPTS, {**_row_key(receipt), "wait_seconds": wait})


async def give_up(batch: Batch, receipt: FailedReceipt) -> None:
    """Publishes a failed message as a dead letter; messages that are parked behind it may be handed out."""
    batch.insert(GIVE_UP_RECEIPTS, _row_key(receipt))
    await publish(batch, await redelivery.dead_letter(receipt))


def _row_key(receipt: FailedReceipt) -> dict[str, object]:
    return {
        "group_id": receipt.group_id,
        "topic_id": receipt.topic_id,
        "queue_id": receipt.queue_id,
        "queue_offset": receipt.queue_offset,
    }
