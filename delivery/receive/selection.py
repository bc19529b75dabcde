"""Selection: chooses a receive's entries by their heads; the bodies of chosen entries are read later."""

from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from delivery.groups import MAX_ENTRIES_READ, QueueProgress
from delivery.limits.rooms import Rooms
from delivery.receive import filtering
from delivery.receive.deliveries import HandedOut, Handout, Receiver
from delivery.receive.filtering import Filtering
from delivery.retries import ordered
from delivery.retries.ordered import OrderedQueue
from delivery.rows import OrderedReceipt
from store.commit.batch import Batch
from store.db.statements import Statement
from store.queues import Queue
from store.reading import progress
from store.rows import Head

INSERT_RECEIPTS = Statement(__file__, "insert_receipts")

# A function that chooses the entries of one queue of an ordered group for a receive.
Choose = Callable[[Batch, Receiver, Filtering, Queue, OrderedQueue, QueueProgress], Awaitable[list[HandedOut]]]

# The most entries that one batch reads for all its receives; `progress.heads` limits the bytes of these entries.
MAX_HEADS = 4 * MAX_ENTRIES_READ


async def by_head(batch: Batch, handouts: Sequence[Handout], reached: Mapping[Queue, QueueProgress]) -> None:
    """Hands each receive the entries that its filter accepts, in any order; also other groups' dead letters."""
    entries = await _heads(batch, handouts, reached)
    taken = 0
    for handout in handouts:
        hold = handout.receiver.hold
        # A receive that got a page from the reserve uses the page alone; all other receives share one page.
        room = hold.page_bytes - (0 if hold.is_small else taken)
        its_filter = Filtering(handout.receiver, filtering.BATCH_SECONDS / len(handouts))
        async for head in _wanted(its_filter, handout.receiver, entries, reached, room):
            taken += 0 if hold.is_small else head.body_bytes
            handout.entries.append(handed_out(batch, handout.receiver, head))
        handout.more = not handout.entries and (hold.is_large or has_moved(handout, reached))


async def _heads(
    batch: Batch, handouts: Sequence[Handout], reached: Mapping[Queue, QueueProgress]
) -> dict[Queue, deque[Head]]:
    """The fields for filters (`Head`) of the entries from which the receives choose, by queue."""
    counts = _entries_to_read(handouts, reached)
    found: dict[Queue, deque[Head]] = {queue: deque() for queue in counts}
    starts = [reached[queue].next_offset for queue in counts]
    if counts:
        heads: Sequence[Head] = await progress.heads(batch, list(counts), starts, list(counts.values()))
        for head in heads:
            found[head.entry_topic_id, head.entry_queue_id].append(head)
    return found


def _entries_to_read(handouts: Sequence[Handout], reached: Mapping[Queue, QueueProgress]) -> dict[Queue, int]:
    """The number of entries to read of each queue: the number asked for, or more when there is a filter.

    A receive reads its first queues until it has its part of MAX_HEADS; the queues take turns at being first.
    """
    counts: Counter[Queue] = Counter()
    for handout in handouts:
        receiver = handout.receiver
        most = receiver.max_messages if receiver.filter is None else MAX_ENTRIES_READ
        part = max(MAX_HEADS // len(handouts), receiver.max_messages)
        for queue in receiver.queues:
            count = min(reached[queue].lag - counts[queue], most, part)
            counts[queue] += count
            part -= count
    return {queue: count for queue, count in counts.items() if count > 0}


async def _wanted(
    its_filter: Filtering,
    receiver: Receiver,
    entries: Mapping[Queue, deque[Head]],
    reached: Mapping[Queue, QueueProgress],
    room: int,
) -> AsyncIterator[Head]:
    """The entries for a receive, in the order of its queues, until the filter's time or `room` (in bytes) is used up.

    The group's progress also moves beyond the entries that the filter does not accept. In a page from the reserve even
    the first body must fit into `room`. A retry is handed out alone.
    """
    wanted = receiver.max_messages
    for queue in receiver.queues:
        heads = entries.get(queue, deque())
        while heads and wanted and room > 0 and await its_filter.goes_on():
            is_wanted = its_filter.takes(heads[0])
            if is_wanted and receiver.hold.is_small and heads[0].body_bytes > room:
                receiver.hold.is_large = True
                return
            is_alone = is_wanted and _retries(receiver, heads[0]) > 0
            if is_alone and wanted < receiver.max_messages:
                return
            head = heads.popleft()
            reached[queue].pass_over(head.queue_offset)
            if is_wanted:
                wanted = 0 if is_alone else wanted - 1
                room -= head.body_bytes
                yield head


async def in_order(
    batch: Batch,
    group_id: int,
    handouts: Sequence[Handout],
    reached: Mapping[Queue, QueueProgress],
    choose: Choose,
) -> None:
    """Hands each receive of an ordered group messages of one queue that has no delivery in flight."""
    queues = await ordered.read_queues(batch, group_id, reached)
    rooms: dict[int, Rooms] = {}
    free = [queue for queue in reached if not queues[queue].is_busy]
    for handout in handouts:
        receiver = handout.receiver
        its_filter = Filtering(receiver, filtering.BATCH_SECONDS / len(handouts))
        if receiver.is_limited and receiver.topic.id not in rooms:
            rooms[receiver.topic.id] = Rooms.of(receiver.group, receiver.topic.id)
        of_topic = rooms.get(receiver.topic.id, Rooms())
        for queue in receiver.queues:
            if queue in free and not (handout.entries or its_filter.is_over or receiver.is_gone):
                at = (queue, queues[queue], reached[queue])
                queues[queue].rooms = of_topic
                handout.entries = await choose(batch, receiver, its_filter, *at)
                if handout.entries:
                    free.remove(queue)
        handout.more = not handout.entries and has_moved(handout, reached)
        handout.again_seconds = of_topic.again_seconds
    for each in rooms.values():
        each.write(batch)


async def from_queue_in_order(
    batch: Batch,
    receiver: Receiver,
    its_filter: Filtering,
    queue: Queue,
    from_queue: OrderedQueue,
    reached: QueueProgress,
) -> list[HandedOut]:
    """The entries of one queue: first held or parked entries that are due, then new entries. Entries of blocked keys
    are parked. The queue waits while its next entry's value is at its limit.
    """
    await ordered.choose_again(batch, receiver.group.id, queue, from_queue, receiver.max_messages)
    chosen = [chosen_again(batch, receiver, queue, receipt) for receipt in from_queue.again]
    wanted, room = from_queue.room_behind_again(receiver.max_messages), receiver.hold.page_bytes
    count = max(wanted, MAX_ENTRIES_READ) if receiver.filter is not None and wanted > 0 else wanted
    heads = await ordered.new_entries(batch, queue, from_queue, reached, min(count, reached.lag))
    await from_queue.rooms.read(batch, [head.sharding_key or ordered.NO_KEY for head in heads])
    its_filter.resume()
    for head in heads:
        if wanted <= 0 or room <= 0 or not await its_filter.goes_on():
            break
        key, is_wanted = head.sharding_key or ordered.NO_KEY, its_filter.takes(head)
        is_blocked = from_queue.is_blocked(head.sharding_key)
        if is_wanted and not is_blocked and not from_queue.rooms.take(key, queue, head.queue_offset):
            break
        reached.pass_over(head.queue_offset)
        if not is_wanted:
            continue
        if is_blocked:
            batch.insert(INSERT_RECEIPTS, receipt_of(receiver, head, "parked", 0))
            continue
        wanted, room = wanted - 1, room - head.body_bytes
        chosen.append(handed_out(batch, receiver, head))
    return chosen


def chosen_again(batch: Batch, receiver: Receiver, queue: Queue, receipt: OrderedReceipt) -> HandedOut:
    """A held or parked message, as a new delivery."""
    nonce = receiver.new_nonce()
    ordered.hand_out_again(batch, receiver.group.id, receipt, nonce, receiver.invisible_seconds)
    return HandedOut(
        segment_id=receipt.segment_id,
        log_offset=receipt.log_offset,
        # The size is not known before the message is read.
        body_bytes=0,
        queue=queue,
        queue_offset=receipt.queue_offset,
        nonce=nonce,
        reconsume_times=receipt.reconsume_times,
    )


def handed_out(batch: Batch, receiver: Receiver, head: Head) -> HandedOut:
    """An entry, as its first delivery from this queue."""
    nonce = receiver.new_nonce()
    batch.insert(INSERT_RECEIPTS, receipt_of(receiver, head, "flight", nonce))
    return HandedOut(
        segment_id=head.segment_id,
        log_offset=head.log_offset,
        body_bytes=head.body_bytes,
        queue=(head.entry_topic_id, head.entry_queue_id),
        queue_offset=head.queue_offset,
        nonce=nonce,
        reconsume_times=_retries(receiver, head),
        died_after=head.reconsume_times if _is_of_other_group(receiver, head) else None,
    )


def _is_of_other_group(receiver: Receiver, head: Head) -> bool:
    """Whether an entry is a dead letter or a discarded message; then its count is not of this group's retries."""
    return receiver.of_others and head.entry_topic_id == receiver.topic.id


def _retries(receiver: Receiver, head: Head) -> int:
    return 0 if _is_of_other_group(receiver, head) else head.reconsume_times


def receipt_of(receiver: Receiver, head: Head, state: str, nonce: int) -> dict[str, object]:
    """The row of an entry's receipt."""
    return {
        "group_id": receiver.group.id,
        "topic_id": head.entry_topic_id,
        "queue_id": head.entry_queue_id,
        "queue_offset": head.queue_offset,
        "nonce": nonce,
        "invisible_seconds": receiver.invisible_seconds,
        "log_segment": head.segment_id,
        "log_offset": head.log_offset,
        "tags_code": head.tags_code,
        "reconsume_times": _retries(receiver, head),
        "origin_topic_id": receiver.topic.id,
        "state": state,
        "sharding_key": (head.sharding_key or ordered.NO_KEY) if receiver.group.ordered else None,
    }


def has_moved(handout: Handout, reached: Mapping[Queue, QueueProgress]) -> bool:
    return any(reached[queue].moved for queue in handout.receiver.queues)
