"""Stepwise receives: receives that choose entries (filters, order, dead letters), and receives left out of a batch."""

from collections.abc import Sequence

from delivery import groups
from delivery.groups import QueueProgress
from delivery.receive import ordered_turns, selection, turns
from delivery.receive.deliveries import Handout, Receiver
from store.commit.batch import Batch
from store.reading import progress
from store.rows import PositionRow


async def hand_out(batch: Batch, receivers: Sequence[Receiver]) -> list[Handout]:
    """Hands out entries to each receive; the receives of one group choose one after another.

    1. The batch has locked the group's progress in the queues that are read, for the whole transaction.
    2. Lock each group. A paused group is handed nothing, and no receive is handed entries while there is no room for
       answers. A receive whose cached group differs in `ordered`, `fair_by` or `limits` reads again.
    3. Choose the entries by their heads, and insert their receipts.
    4. Move the group's progress beyond each entry that was handed out, parked or passed over.

    Messages are read after the commit: a process that stops while it reads large bodies from its socket must not keep
    the locks.
    """
    handouts = [Handout(receiver) for receiver in receivers]
    by_group: dict[int, list[Handout]] = {}
    for handout in handouts:
        by_group.setdefault(handout.receiver.group.id, []).append(handout)
    held = await groups.hold(batch, by_group)
    for group_id in sorted(held):
        current: list[Handout] = []
        for handout in by_group[group_id]:
            group = handout.receiver.group
            now = held[group_id]
            is_current = (group.ordered, group.fair_by, group.limits) == (now.ordered, now.fair_by, now.limits)
            is_short = handout.receiver.hold.is_short
            # A receive without room reads again when there is room.
            handout.more = is_short or not is_current
            if not is_current:
                groups.forget(group.name)
            elif not is_short:
                current.append(handout)
        if current and not held[group_id].paused:
            await _hand_out_to_group(batch, group_id, current)
        for handout in by_group[group_id]:
            handout.count_bodies()
    return handouts


async def _hand_out_to_group(batch: Batch, group_id: int, handouts: Sequence[Handout]) -> None:
    group = handouts[0].receiver.group
    queues = sorted({queue for handout in handouts for queue in handout.receiver.queues})
    rows: Sequence[PositionRow] = await progress.positions(batch, group_id, queues)
    reached = {(row.topic_id, row.queue_id): QueueProgress.of(row, group) for row in rows}
    if group.ordered:
        is_fair = group.fair_by is not None
        choose = ordered_turns.from_queue_by_turns if is_fair else selection.from_queue_in_order
        await selection.in_order(batch, group_id, handouts, reached, choose)
    else:
        by_topic: dict[int, list[Handout]] = {}
        for handout in handouts:
            by_topic.setdefault(handout.receiver.topic.id if handout.receiver.reads_ahead else 0, []).append(handout)
        await selection.by_head(batch, by_topic.pop(0, ()), reached)
        for of_topic in by_topic.values():
            await turns.by_key(batch, of_topic, reached)
    for queue, at in reached.items():
        if at.moved:
            progress.move(batch, group_id, queue, at.move + 1, at.next_offset)
