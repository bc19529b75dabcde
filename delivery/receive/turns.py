"""Turns: a fair group hands out one message of each key in turn, however many messages of a key wait.

A receive reads entries ahead, and keeps them waiting by key. A row holds a run of up to MAX_OFFSETS entries of one key
and queue. The group hands out the first waiting message of each key, then the second of each key, and so on, beginning
with the key after the last served key. So a key with a million messages delays another key only by one message per
turn.

A group with limits hands out its messages in the same way, but passes over each key whose value is at its limit.
Deliveries in flight are counted from the receipts of the value, so the count is right after any crash. The lock of the
group's progress in a topic makes the count exact.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from delivery.groups import QueueProgress
from delivery.limits import keys
from delivery.limits.bounds import SLOT_SECONDS
from delivery.receive import filtering, shares
from delivery.receive.deliveries import Handout, Receiver
from delivery.receive.filtering import Filtering
from delivery.receive.shares import Share
from store.commit.batch import Batch
from store.db.statements import Statement
from store.process import runtime
from store.queues import Queue
from store.reading import progress

# The most entries that a batch reads ahead in all queues of a topic, in about 10 ms, with the group's locks held.
MAX_READ_AHEAD = 2048
# The most entries of a run; they take 1 kB.
MAX_OFFSETS = 128
# The most waiting messages of a group: 10 MB with few keys, 250 MB with a key for each message. Beyond this no entry is
# read ahead until others are handed out. A process may exceed the limit by the entries that it reads in
# COUNTED_SECONDS.
MAX_WAITING = 1_000_000
COUNTED_SECONDS = 30.0
# The most pairs of group and topic whose turns a process keeps. Beyond this all turns are dropped.
MAX_KNOWN = 10_000
# The most keys at which one receive looks for room: 1,024 keys that are at their limit take about 10 ms. The next
# receive goes on behind them, after LOOK_ON_SECONDS.
MAX_LOOKED = 1024
LOOK_ON_SECONDS = 0.1


class Waiting(NamedTuple):
    """The number of entries of a queue that a group has read ahead, and when the first entry became visible."""

    group_id: int
    topic_id: int
    queue_id: int
    waiting: int
    oldest_at: datetime | None


class HandedByTurns(NamedTuple):
    """A reading's handout by turns: the number of entries, whether further entries had no room, the last served key,
    and after how many seconds to look again at a value without room.

    `kept`: the session's register contains the last key. The other fields are the fields of `HandedEntries`.
    """

    reading: int
    taken: int
    cut: bool
    last_key: str
    again_seconds: float | None
    handed: bytes | None
    kept: bool
    named: bool


READ_AHEAD = Statement(__file__, "read_ahead")
HAND_OUT_BY_TURNS = Statement(__file__, "hand_out_by_turns", HandedByTurns)
COUNT_WAITING = Statement(__file__, "count_waiting", Waiting)


class Turn:
    """A process's state for a group and a topic: the last served key, and about how many messages wait.

    Each process has its own order of turns; if each is fair, all together are fair. If this state is lost, a key may
    lose one turn.
    """

    def __init__(self) -> None:
        self.key = keys.NO_KEY
        # The nonce of the last hand-out in a pipelined batch until it is answered, then 0. Before the answer only the
        # session has the last served key.
        self.under_way = 0
        self.waiting = 0
        # The time of the last count, by time.monotonic().
        self.counted_at: float | None = None

    @property
    def must_count(self) -> bool:
        """Whether it is time to count the waiting messages, before the next hand-out."""
        if self.counted_at is None:
            return True
        return self.waiting > MAX_WAITING / 10 and time.monotonic() - self.counted_at > COUNTED_SECONDS

    @property
    def is_full(self) -> bool:
        """Whether MAX_WAITING messages wait, so that no entry is read ahead."""
        return self.waiting >= MAX_WAITING

    async def count(self, batch: Batch, group_id: int) -> None:
        """Counts the waiting messages if the last count is too old."""
        if self.must_count:
            rows = await batch.read(COUNT_WAITING, {"group_ids": [group_id]})
            self.waiting, self.counted_at = sum(row.waiting for row in rows), time.monotonic()

    def move_on(self, key: str, more: int) -> None:
        """Sets, after the commit, the last served key, and adds to the number of waiting messages."""
        self.key = key
        self.waiting += more

    def answered(self, nonce: int, key: str, more: int) -> None:
        """Called after a hand-out in a pipelined batch; a stepwise batch calls `move_on` directly."""
        self.move_on(key, more)
        if nonce == self.under_way:
            self.under_way = 0


class Turns:
    """The objects of the class Turn of this process, by group and topic."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Turn] = {}

    def of(self, receiver: Receiver) -> Turn:
        """The turn of the group and the topic of a receive."""
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        return self._known.setdefault((receiver.group.id, receiver.topic.id), Turn())


async def by_key(batch: Batch, handouts: Sequence[Handout], reached: Mapping[Queue, QueueProgress]) -> None:
    """Hands waiting messages to the receives of one group and one topic, by turns over the keys.

    1. Read entries ahead that the filter of the first receive accepts.
    2. Hand out waiting messages. A receive with a page from the reserve has the page for itself; the others share one.
    """
    present = [handout for handout in handouts if not handout.receiver.is_gone]
    if not present:
        return
    receiver = present[0].receiver
    turn = runtime.part(Turns).of(receiver)
    await turn.count(batch, receiver.group.id)
    more = 0 if turn.is_full else await _read_ahead(batch, receiver, reached)
    key = turn.key
    for share in shares.of(present):
        found = await _hand_out(batch, share, key)
        key, more = found.last_key, more - found.taken
        share.note_more(found.taken, reached, is_cut=found.cut)
        for handout in share.handouts:
            handout.again_seconds = found.again_seconds
    batch.after_commit(partial(turn.move_on, key, more))
    await shares.read_bodies(batch, present)


async def _read_ahead(batch: Batch, receiver: Receiver, reached: Mapping[Queue, QueueProgress]) -> int:
    """Reads the queues' next entries ahead, by key, if the filter accepts them; returns their number."""
    queues = [queue for queue in receiver.queues if reached[queue].lag > 0]
    if not queues:
        return 0
    most = max(MAX_READ_AHEAD // len(queues), 1)
    if receiver.filter is None:
        starts = {queue: reached[queue].next_offset for queue in queues}
        ranges = [(queue, start, min(start + most, reached[queue].max_offset)) for queue, start in starts.items()]
        for queue, _, end in ranges:
            reached[queue].pass_over(end - 1)
    else:
        ranges = list(_ranges(await _wanted(batch, receiver, queues, most, reached)))
    if ranges:
        parameters = {
            "group_id": [receiver.group.id],
            "topic_id": [receiver.topic.id],
            "ahead": ",".join(f"1 {queue[0]} {queue[1]} {start} {end}" for queue, start, end in ranges),
            "property": [keys.pattern(receiver.key_source)],
            "key_length": [keys.length(receiver.key_source)],
            "max_offsets": MAX_OFFSETS,
        }
        await batch.read(READ_AHEAD, parameters)
    return sum(end - start for _, start, end in ranges)


async def _wanted(
    batch: Batch, receiver: Receiver, queues: Sequence[Queue], most: int, reached: Mapping[Queue, QueueProgress]
) -> list[tuple[Queue, int]]:
    """The next entries that a receive's filter accepts, queue by queue, until the filter's time is over."""
    starts = [reached[queue].next_offset for queue in queues]
    counts = [min(reached[queue].lag, most) for queue in queues]
    its_filter = Filtering(receiver, filtering.BATCH_SECONDS)
    found: list[tuple[Queue, int]] = []
    for head in await progress.heads(batch, queues, starts, counts):
        if not await its_filter.goes_on():
            break
        queue = (head.entry_topic_id, head.entry_queue_id)
        reached[queue].pass_over(head.queue_offset)
        if its_filter.takes(head):
            found.append((queue, head.queue_offset))
    return found


def _ranges(entries: Sequence[tuple[Queue, int]]) -> Iterator[tuple[Queue, int, int]]:
    """The entries as ranges of offsets: queue, first offset, offset after the last."""
    start = 0
    for number, (queue, offset) in enumerate(entries, 1):
        if number == len(entries) or entries[number] != (queue, offset + 1):
            yield queue, entries[start][1], offset + 1
            start = number


async def _hand_out(batch: Batch, share: Share, after: str) -> HandedByTurns:
    """Hands waiting entries to the receives of a share, by turns from the key after `after` on."""
    parameters = {
        **share.parameters,
        "wanted": [share.wanted],
        "readings": [1],
        "group_id": [share.receiver.group.id],
        "topic_id": [share.receiver.topic.id],
        "after": [after],
        "follows": [0],
        "wanted_before": [0],
        "max_looked": MAX_LOOKED,
        "look_on_seconds": LOOK_ON_SECONDS,
        "slot_seconds": SLOT_SECONDS,
        "max_read_bytes": 0,
        "queue_reading": [1] * len(share.receiver.queues),
    }
    [found] = await batch.read(HAND_OUT_BY_TURNS, parameters)
    share.give(found.handed)
    return found
