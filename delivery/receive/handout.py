"""Handout: hands each receive its messages and hides them, under the lock of the group's progress."""

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from delivery.groups import QueueProgress, locks_of
from delivery.receive import selection
from delivery.receive.deliveries import HandedOut, Handout, Receiver
from delivery.rows import GroupId, HandedEntry
from store.commit.batch import Batch, Kind, Pending
from store.db.statements import Statement
from store.process import budget
from store.queues import Queue
from store.reading import progress
from store.rows import PositionRow

HAND_OUT = Statement(__file__, "hand_out", HandedEntry)
HOLD_RUNNING_GROUPS = Statement(__file__, "hold_running_groups", GroupId)


class Receivers(Kind[Receiver]):
    """Receives, written in a batch: those of one group take turns, and read what they are handed together.

    1. `locks`: the group's progress in the queues that are read, for the whole transaction.
    2. A group that is paused is handed nothing; nor is any while answers are short of room.
    3. The messages are chosen, and their receipts inserted: by `_hand_out` in one statement where every entry is
       wanted, else by `selection`, which reads the heads of entries first.
    4. The group's progress moves beyond every entry that was handed out, parked or passed over.
    """

    lane = "receives"

    def locks(self, pending: list[Pending[Receiver]]) -> Iterator[int]:
        for one in pending:
            yield from locks_of(one.request.group, one.request.topic, one.request.queues)

    async def decide(self, batch: Batch, pending: list[Pending[Receiver]]) -> None:
        by_group: dict[int, list[Handout]] = {}
        for one in pending:
            one.outcome = handout = Handout(one.request)
            by_group.setdefault(one.request.group.id, []).append(handout)
        group_ids = sorted(by_group)
        # Not as this process cached them: a pause holds from its answer on, for every process.
        running = {row.id for row in await batch.read(HOLD_RUNNING_GROUPS, {"ids": group_ids})}
        for group_id in group_ids:
            is_short = budget.is_short()
            for handout in by_group[group_id]:
                # It waits for room before it reads again.
                handout.more = is_short
            if group_id in running and not is_short:
                await _hand_out_to_group(batch, group_id, by_group[group_id])
            for handout in by_group[group_id]:
                handout.count_bodies()


RECEIVERS = Receivers()


async def _hand_out_to_group(batch: Batch, group_id: int, handouts: Sequence[Handout]) -> None:
    group = handouts[0].receiver.group
    queues = sorted({queue for handout in handouts for queue in handout.receiver.queues})
    rows: Sequence[PositionRow] = await progress.positions(batch, group_id, queues)
    reached = {(row.topic_id, row.queue_id): QueueProgress.of(row, group) for row in rows}
    if group.ordered:
        await selection.in_order(batch, group_id, handouts, reached)
    elif any(handout.receiver.filter is not None or handout.receiver.of_dead_letters for handout in handouts):
        await selection.by_head(batch, handouts, reached)
    else:
        await _hand_out(batch, handouts, reached)
    for queue, at in reached.items():
        if at.moved:
            progress.move(batch, group_id, queue, at.move + 1, at.next_offset)


@dataclass(frozen=True, slots=True)
class Share:
    """What one receive is handed of one queue: so many entries from an offset on, under one nonce."""

    handout: Handout
    queue: Queue
    from_offset: int
    entries: int
    nonce: int


async def _hand_out(batch: Batch, handouts: Sequence[Handout], reached: Mapping[Queue, QueueProgress]) -> None:
    """Hands each receive its share of the entries, whatever they are."""
    shares = _share_out(handouts, reached)
    if not shares:
        return
    for row in await batch.read(HAND_OUT, _columns(shares)):
        share = shares[row.share - 1]
        reached[share.queue].pass_over(row.queue_offset)
        share.handout.messages.append(
            HandedOut(
                message=row,
                queue=share.queue,
                queue_offset=row.queue_offset,
                nonce=share.nonce,
                reconsume_times=row.reconsume_times,
                origin_topic_id=share.handout.receiver.topic.id,
            )
        )
    for share in shares:
        share.handout.more = not share.handout.messages


def _share_out(handouts: Sequence[Handout], reached: Mapping[Queue, QueueProgress]) -> list[Share]:
    """The entries of each receive: as many as it asks for, from as few queues as have them."""
    shared: Counter[Queue] = Counter()
    shares: list[Share] = []
    for handout in handouts:
        wanted, nonce = handout.receiver.max_messages, secrets.randbits(62)
        for queue in handout.receiver.queues:
            entries = min(wanted, reached[queue].lag - shared[queue])
            if entries > 0:
                shares.append(Share(handout, queue, reached[queue].next_offset + shared[queue], entries, nonce))
                shared[queue] += entries
                wanted -= entries
    return shares


def _columns(shares: Sequence[Share]) -> dict[str, object]:
    receivers = [share.handout.receiver for share in shares]
    return {
        "group_id": [receiver.group.id for receiver in receivers],
        "topic_id": [share.queue[0] for share in shares],
        "queue_id": [share.queue[1] for share in shares],
        "from_offset": [share.from_offset for share in shares],
        "entries": [share.entries for share in shares],
        "nonce": [share.nonce for share in shares],
        "invisible_seconds": [receiver.invisible_seconds for receiver in receivers],
        "origin_topic_id": [receiver.topic.id for receiver in receivers],
        "max_bytes": budget.page_bytes() // len({share.queue for share in shares}),
    }
