"""Handout: chooses the messages that a receive gets and hides them, under the lock of the group's progress."""

import secrets
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from delivery import ordered
from delivery.groups import MAX_LOOKED_AT, Position, locks_of
from delivery.receive.deliveries import Queue, Take, Taken
from delivery.rows import GroupId, HandedOut
from store import budget, log, progress
from store.commit.batch import Batch, Kind, Pending
from store.db.connections import Row
from store.db.statements import Statement

HAND_OUT = Statement(__file__, "hand_out", HandedOut)
HOLD_RUNNING_GROUPS = Statement(__file__, "hold_running_groups", GroupId)
INSERT_RECEIPTS = Statement(__file__, "insert_receipts")


class Takes(Kind[Take]):
    """Receives are written in a batch: those of one group take turns, and read what they get together."""

    lane = "takes"

    def locks(self, pending: list[Pending[Take]]) -> Iterator[int]:
        for one in pending:
            yield from locks_of(one.request.group, one.request.topic, one.request.queues)

    async def decide(self, batch: Batch, pending: list[Pending[Take]]) -> None:
        group_ids = sorted({one.request.group.id for one in pending})
        # Not as this process remembers them: a pause holds from its answer on, for every process.
        running = {row.id for row in await batch.read(HOLD_RUNNING_GROUPS, {"ids": group_ids})}
        for group_id in group_ids:
            takes = [one.request for one in pending if one.request.group.id == group_id]
            # While answers are short of room, takers wait for it before they ask again.
            wait = budget.is_short()
            for take in takes:
                take.taken, take.more = [], wait
            if group_id in running and not wait:
                await self._take_for_group(batch, group_id, takes)

    async def _take_for_group(self, batch: Batch, group_id: int, takes: list[Take]) -> None:
        queues = sorted({queue for take in takes for queue in take.queues})
        found = await progress.positions(batch, group_id, queues)
        positions = {(row.topic_id, row.queue_id): Position.of(row, takes[0].group) for row in found}
        if takes[0].group.ordered:
            await self._take_in_order(batch, group_id, takes, positions)
            await self._add_bodies(batch, takes)
        elif any(take.wants is not None or take.of_dead_letters for take in takes):
            await self._take_by_filter(batch, takes, positions)
            await self._add_bodies(batch, takes)
        else:
            await hand_out(batch, takes, positions)
        for queue, position in positions.items():
            if position.moved:
                progress.move(batch, group_id, queue, position.move + 1, position.next_offset)

    async def _take_by_filter(self, batch: Batch, takes: list[Take], positions: dict[Queue, Position]) -> None:
        """Judges the heads of entries; the bodies are read of those only that are handed out."""
        lanes = await self._heads(batch, takes, positions)
        room = budget.page_bytes()
        for take in takes:
            for row in _chosen(take, lanes, positions, room):
                room -= row.body_bytes
                take.taken.append(_handed_out(batch, take, row))
            take.more = not take.taken and any(positions[queue].moved for queue in take.queues)

    async def _add_bodies(self, batch: Batch, takes: list[Take]) -> None:
        """Reads the whole messages of what was chosen by its head."""
        heads = [taken.row for take in takes for taken in take.taken]
        if not heads:
            return
        places = log.places([(head.segment_id, head.log_offset) for head in heads])
        rows = {(row.segment_id, row.log_offset): row for row in await batch.read(log.READ_MESSAGES, places)}
        for take in takes:
            take.taken = [replace(taken, row=rows[taken.row.segment_id, taken.row.log_offset]) for taken in take.taken]
            take.hold.set(sum(len(taken.row.body) for taken in take.taken))

    async def _take_in_order(
        self, batch: Batch, group_id: int, takes: list[Take], positions: dict[Queue, Position]
    ) -> None:
        lanes = await ordered.lanes(batch, group_id, positions)
        free = [queue for queue in positions if not lanes[queue].busy]
        for take in takes:
            for queue in take.queues:
                if queue in free and not take.taken:
                    take.taken = await self._take_lane(batch, take, queue, lanes[queue], positions[queue])
                    if take.taken:
                        free.remove(queue)
            take.more = not take.taken and any(positions[queue].moved for queue in take.queues)

    async def _take_lane(
        self, batch: Batch, take: Take, queue: Queue, lane: ordered.Lane, position: Position
    ) -> list[Taken]:
        """A batch of one queue: what is due again, then new entries; those of a blocked key are parked."""
        await ordered.choose_again(batch, take.group.id, queue, lane, take.max_messages)
        taken = []
        for place in lane.again:
            nonce = ordered.hand_out_again(batch, take.group.id, place, take.invisible_seconds)
            taken.append(Taken(place, queue, place.queue_offset, nonce, place.reconsume_times))
        wanted, room = take.max_messages - len(taken), budget.page_bytes()
        look_at = max(wanted, MAX_LOOKED_AT) if take.wants is not None and wanted > 0 else wanted
        for row in await ordered.new_entries(batch, queue, lane, position, min(look_at, position.lag)):
            if len(taken) >= take.max_messages or room <= 0:
                break
            position.pass_over(row.queue_offset)
            if take.wants is not None and not take.wants(row):
                continue
            if lane.is_blocked(row.sharding_key):
                batch.insert(INSERT_RECEIPTS, _receipt(take, row, "parked", 0))
                continue
            room -= row.body_bytes
            taken.append(_handed_out(batch, take, row))
        return taken

    async def _heads(
        self, batch: Batch, takes: list[Take], positions: dict[Queue, Position]
    ) -> dict[Queue, deque[Row]]:
        """The heads of the entries that the takes may get, by queue."""
        counts = _looked_at(takes, positions)
        lanes: dict[Queue, deque[Row]] = {queue: deque() for queue in counts}
        starts = [positions[queue].next_offset for queue in counts]
        if counts:
            for row in await progress.heads(batch, list(counts), starts, list(counts.values())):
                lanes[row.entry_topic_id, row.entry_queue_id].append(row)
        return lanes

    async def record(self, batch: Batch, pending: list[Pending[Take]]) -> None:
        for one in pending:
            one.outcome = one.request.taken


def _looked_at(takes: list[Take], positions: dict[Queue, Position]) -> dict[Queue, int]:
    """How many entries of each queue the takes look at, for what they ask for or for what their filters pass over."""
    counts: Counter[Queue] = Counter()
    for take in takes:
        for queue in take.queues:
            left = positions[queue].lag - counts[queue]
            counts[queue] += min(left, take.max_messages if take.wants is None else MAX_LOOKED_AT)
    return {queue: count for queue, count in counts.items() if count > 0}


def _chosen(take: Take, lanes: dict[Queue, deque[Row]], positions: dict[Queue, Position], room: int) -> Iterator[Row]:
    """A take's entries, in the order of its queues, while there is room for their bodies.

    The entries that its filter passes over are done for the group.
    """
    wanted = take.max_messages
    for queue in take.queues:
        lane = lanes.get(queue, deque())
        while lane and wanted and room > 0:
            row = lane.popleft()
            positions[queue].pass_over(row.queue_offset)
            if take.wants is None or take.wants(row):
                wanted -= 1
                room -= row.body_bytes
                yield row


def _handed_out(batch: Batch, take: Take, row: Row) -> Taken:
    """An entry that is handed out for the first time from its queue."""
    nonce = secrets.randbits(62)
    batch.insert(INSERT_RECEIPTS, _receipt(take, row, "flight", nonce))
    queue = (row.entry_topic_id, row.entry_queue_id)
    died_after = row.reconsume_times if _is_new_to(take, row) else None
    return Taken(row, queue, row.queue_offset, nonce, _retries(take, row), died_after)


def _is_new_to(take: Take, row: Row) -> bool:
    """Whether an entry is another group's dead letter; the retries of it were not this group's."""
    return take.of_dead_letters and row.entry_topic_id == take.topic.id


def _retries(take: Take, row: Row) -> int:
    return 0 if _is_new_to(take, row) else int(row.reconsume_times)


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
        "reconsume_times": _retries(take, row),
        "origin_topic_id": take.topic.id,
        "state": state,
        "sharding_key": (row.sharding_key or ordered.NO_KEY) if take.group.ordered else None,
    }


TAKES = Takes()


@dataclass(frozen=True, slots=True)
class Share:
    """What one take gets of one queue: so many entries from an offset on, under one nonce."""

    take: Take
    queue: Queue
    from_offset: int
    entries: int
    nonce: int


async def hand_out(batch: Batch, takes: list[Take], positions: dict[Queue, Position]) -> None:
    """Gives each take its messages and moves the group's positions beyond them."""
    shares = _share_out(takes, positions)
    if not shares:
        return
    for row in await batch.read(HAND_OUT, _columns(shares)):
        share = shares[row.share - 1]
        positions[share.queue].pass_over(row.queue_offset)
        share.take.taken.append(Taken(row, share.queue, row.queue_offset, share.nonce, row.reconsume_times))
    for share in shares:
        share.take.more = not share.take.taken
    for take in takes:
        take.hold.set(sum(len(taken.row.body) for taken in take.taken))


def _share_out(takes: list[Take], positions: dict[Queue, Position]) -> list[Share]:
    """Which entries each take gets: what it asks for, from as few queues as have it."""
    given: Counter[Queue] = Counter()
    shares: list[Share] = []
    for take in takes:
        wanted, nonce = take.max_messages, secrets.randbits(62)
        for queue in take.queues:
            position = positions[queue]
            entries = min(wanted, position.lag - given[queue])
            if entries > 0:
                shares.append(Share(take, queue, position.next_offset + given[queue], entries, nonce))
                given[queue] += entries
                wanted -= entries
    return shares


def _columns(shares: list[Share]) -> dict[str, object]:
    return {
        "group_id": [share.take.group.id for share in shares],
        "topic_id": [share.queue[0] for share in shares],
        "queue_id": [share.queue[1] for share in shares],
        "from_offset": [share.from_offset for share in shares],
        "entries": [share.entries for share in shares],
        "nonce": [share.nonce for share in shares],
        "invisible_seconds": [share.take.invisible_seconds for share in shares],
        "origin_topic_id": [share.take.topic.id for share in shares],
        "max_bytes": budget.page_bytes() // len({share.queue for share in shares}),
    }
