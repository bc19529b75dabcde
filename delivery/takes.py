"""Takes: which messages a receive gets, chosen and hidden by group commit under the lock of the group's positions."""

import secrets
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import Any

from delivery import ordered, receipts
from delivery.filters import Filter
from delivery.groups import GroupFacts
from store import log, messages, readers
from store.batch import Batch, Kind, Pending
from store.database import Row
from store.statements import Statement
from store.topics import TopicFacts

# A queue by its topic's id and its number.
Queue = tuple[int, int]

INSERT_RECEIPTS = Statement(__file__, "insert_receipts")

# Entries that one receive looks at in each queue, when a filter passes over most of them.
MAX_LOOKED_AT = 256


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that is handed out: its row of the log, its place, this delivery's nonce, the retries before it."""

    row: Row
    queue: Queue
    queue_offset: int
    nonce: int
    reconsume_times: int


@dataclass(slots=True)
class Take:
    """One receive, judged; `queues` are the (topic, queue) pairs it reads, the retries first."""

    group: GroupFacts
    topic: TopicFacts
    queues: list[Queue]
    wants: Filter | None
    max_messages: int
    invisible_seconds: float
    taken: list["Taken"] = field(default_factory=list)
    # The filter passed over all that was looked at: there may be more behind it.
    passed_over: bool = False


@dataclass(slots=True)
class Position:
    """Where a group stands in a queue while a batch is written."""

    next_offset: int
    max_offset: int
    move: int
    moved: bool

    @classmethod
    def of(cls, row: Row, group: GroupFacts) -> "Position":
        """From the ledger; a group that never read the queue starts where `start_at` says, and keeps to that."""
        if row.next_offset is None:
            latest = group.start_at == "latest"
            return cls(row.max_offset if latest else row.min_offset, row.max_offset, 0, latest)
        return cls(max(row.next_offset, row.min_offset), row.max_offset, row.move, False)

    @property
    def lag(self) -> int:
        return self.max_offset - self.next_offset

    def pass_over(self, offset: int) -> None:
        self.next_offset = offset + 1
        self.moved = True


class Takes(Kind[Take]):
    """Receives are written in a batch: those of one group take turns, and read what they get in one statement."""

    lane = "takes"

    async def decide(self, batch: Batch, pending: list[Pending[Take]]) -> None:
        for group_id in sorted({one.request.group.id for one in pending}):
            takes = [one.request for one in pending if one.request.group.id == group_id]
            await self._take_for_group(batch, group_id, takes)

    async def _take_for_group(self, batch: Batch, group_id: int, takes: list[Take]) -> None:
        queues = sorted({queue for take in takes for queue in take.queues})
        await readers.lock(batch, group_id, queues)
        found = await readers.positions(batch, group_id, queues)
        positions = {(row.topic_id, row.queue_id): Position.of(row, takes[0].group) for row in found}
        if takes[0].group.ordered:
            await self._take_in_order(batch, group_id, takes, positions)
        else:
            await self._take_freely(batch, takes, positions)
        for queue, position in positions.items():
            if position.moved:
                readers.move(batch, group_id, queue, position.move + 1, position.next_offset)

    async def _take_freely(self, batch: Batch, takes: list[Take], positions: dict[Queue, "Position"]) -> None:
        filtered = any(take.wants is not None for take in takes)
        lanes = await self._read(batch, takes, positions, heads=filtered)
        for take in takes:
            chosen = _choose(take, lanes, positions)
            take.passed_over = not chosen and any(positions[queue].moved for queue in take.queues)
            take.taken = [_fresh(row) for row in chosen]
            for taken in take.taken:
                batch.insert(INSERT_RECEIPTS, _receipt(take, taken.row, "flight", taken.nonce))
        if filtered:
            await self._add_bodies(batch, takes)

    async def _add_bodies(self, batch: Batch, takes: list[Take]) -> None:
        """Reads the whole messages of what was chosen by its head."""
        heads = [taken.row for take in takes for taken in take.taken]
        if not heads:
            return
        places = log.places([(head.segment_id, head.log_offset) for head in heads])
        rows = {(row.segment_id, row.log_offset): row for row in await batch.read(log.READ_MESSAGES, places)}
        for take in takes:
            take.taken = [replace(taken, row=rows[taken.row.segment_id, taken.row.log_offset]) for taken in take.taken]

    async def _take_in_order(
        self, batch: Batch, group_id: int, takes: list[Take], positions: dict[Queue, "Position"]
    ) -> None:
        lanes = await ordered.lanes(batch, group_id, list(positions))
        free = [queue for queue in positions if not lanes[queue].busy]
        for take in takes:
            take.taken = []
            for queue in take.queues:
                if queue in free and not take.taken:
                    take.taken = await self._take_lane(batch, take, queue, lanes[queue], positions[queue])
                    if take.taken:
                        free.remove(queue)

    async def _take_lane(
        self, batch: Batch, take: Take, queue: Queue, lane: ordered.Lane, position: "Position"
    ) -> list["Taken"]:
        """A batch of one queue: what is due again, then new entries; those of a blocked key are parked."""
        lane.choose_again(take.max_messages)
        stored = await ordered.messages_of(batch, lane.again)
        taken = []
        for place in lane.again:
            nonce = ordered.hand_out_again(batch, take.group.id, place, take.invisible_seconds)
            row = stored[place.log_segment, place.log_offset]
            taken.append(Taken(row, queue, place.queue_offset, nonce, place.reconsume_times))
        room = take.max_messages - len(taken)
        for row in await ordered.new_entries(batch, queue, lane, position.next_offset, room):
            if len(taken) >= take.max_messages:
                break
            position.pass_over(row.queue_offset)
            if take.wants is not None and not take.wants(row):
                continue
            if lane.is_blocked(row.sharding_key):
                batch.insert(INSERT_RECEIPTS, _receipt(take, row, "parked", 0))
                continue
            taken.append(_fresh(row))
            batch.insert(INSERT_RECEIPTS, _receipt(take, row, "flight", taken[-1].nonce))
        return taken

    async def _read(
        self, batch: Batch, takes: list[Take], positions: dict[Queue, "Position"], *, heads: bool
    ) -> dict[Queue, deque[Row]]:
        """The entries that the takes may get. Offsets are dense: how many each queue gives is known beforehand."""
        counts = _allot(takes, positions)
        lanes: dict[Queue, deque[Row]] = {queue: deque() for queue in counts}
        if counts:
            queues = list(counts)
            starts = [positions[queue].next_offset for queue in queues]
            for row in await readers.read(batch, queues, starts, list(counts.values()), heads=heads):
                lanes[row.entry_topic_id, row.entry_queue_id].append(row)
        return lanes

    async def record(self, batch: Batch, pending: list[Pending[Take]]) -> None:
        for one in pending:
            one.outcome = [entry(one.request, taken) for taken in one.request.taken]


def _allot(takes: list[Take], positions: dict[Queue, "Position"]) -> dict[Queue, int]:
    """How many entries to read from each queue: what the takes ask for, from as few queues as have it."""
    counts: Counter[Queue] = Counter()
    for take in takes:
        wanted = take.max_messages
        for queue in take.queues:
            left = positions[queue].lag - counts[queue]
            if take.wants is not None:
                counts[queue] += min(left, MAX_LOOKED_AT)
            elif wanted and left > 0:
                counts[queue] += min(left, wanted)
                wanted -= min(left, wanted)
    return {queue: count for queue, count in counts.items() if count > 0}


def _choose(take: Take, lanes: dict[Queue, deque[Row]], positions: dict[Queue, "Position"]) -> list[Row]:
    """A take's messages, in the order of its queues; the entries that its filter passes over are done for the group."""
    chosen: list[Row] = []
    for queue in take.queues:
        lane = lanes.get(queue, ())
        while lane and len(chosen) < take.max_messages:
            row = lane.popleft()
            positions[queue].pass_over(row.queue_offset)
            if take.wants is None or take.wants(row):
                chosen.append(row)
    return chosen


TAKES = Takes()


def _fresh(row: Row) -> Taken:
    """An entry that is handed out for the first time from its queue."""
    queue = (row.entry_topic_id, row.entry_queue_id)
    return Taken(row, queue, row.queue_offset, secrets.randbits(62), row.reconsume_times)


def _receipt(take: Take, row: Row, state: str, nonce: int) -> dict[str, object]:
    return {
        "group_id": take.group.id,
        "topic_id": row.entry_topic_id,
        "queue_id": row.entry_queue_id,
        "queue_offset": row.queue_offset,
        "nonce": nonce,
        "invisible_seconds": take.invisible_seconds,
        "log_segment": row.segment_id,
        "log_offset": row.log_offset,
        "tags_code": row.tags_code,
        "reconsume_times": row.reconsume_times,
        "origin_topic_id": take.topic.id,
        "state": state,
        "sharding_key": row.sharding_key if take.group.ordered else None,
    }


def entry(take: Take, taken: Taken) -> dict[str, Any]:
    """A delivery as the API gives it out."""
    row = taken.row
    message = messages.given_out(row, take.topic.name)
    message["reconsume_times"] = taken.reconsume_times
    if taken.reconsume_times:
        message["properties"] = {**_retry_properties(take, taken), **_properties(message)}
    return {
        "message": message,
        "queue_id": taken.queue[1],
        "queue_offset": taken.queue_offset,
        "delivery_attempt": taken.reconsume_times + 1,
        "receipt_handle": receipts.handle(take.group.id, *taken.queue, taken.queue_offset, taken.nonce),
    }


def _properties(message: dict[str, object]) -> dict[str, str]:
    found = message.get("properties")
    return found if isinstance(found, dict) else {}


def _retry_properties(take: Take, taken: Taken) -> dict[str, str]:
    """What RocketMQ's consumers read of a retried message."""
    return {
        "RETRY_TOPIC": take.topic.name,
        "ORIGIN_MESSAGE_ID": str(taken.row.message_id),
        "RECONSUME_TIME": str(taken.reconsume_times),
    }
