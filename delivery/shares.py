"""Shares: who gets which entries of a queue, when all of them are alike to whoever receives them.

Offsets are dense, so that is known before any entry is read: one statement hides the messages and reads them.
"""

import secrets
from collections import Counter
from dataclasses import dataclass

from delivery.deliveries import Queue, Take, Taken
from delivery.positions import Position
from store import budget
from store.batch import Batch
from store.statements import Statement

HAND_OUT = Statement(__file__, "hand_out")


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
