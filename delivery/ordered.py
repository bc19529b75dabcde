"""Ordered groups: one batch of a queue in flight, and a message that fails holds up only what must not overtake it.

A failed message stays in its place. With sharding keys only its key waits: later messages of the key are parked behind
it, those of other keys go on. A message without a key holds up its whole queue.
"""

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from delivery import redelivery
from delivery.groups import MAX_LOOKED_AT, Position
from delivery.redelivery import Failed
from delivery.rows import HeldPlace
from scheduling.publish import publish
from store import progress, runtime
from store.commit.batch import Batch
from store.db.connections import Row
from store.db.statements import Statement

GIVE_UP_RECEIPTS = Statement(__file__, "give_up_receipts")
HAND_OUT_AGAIN = Statement(__file__, "hand_out_again")
HOLD_RECEIPTS = Statement(__file__, "hold_receipts")
READ_PLACES = Statement(__file__, "read_places", HeldPlace)
READ_PLACES_OF_KEYS = Statement(__file__, "read_places_of_keys", HeldPlace)

# Stands in a receipt for the sharding key of a message without one: no key is empty.
NO_KEY = ""
# Keys that wait in a queue at most; then the whole queue waits. A receive probes each of them, at some 10 us. What is
# parked behind a key has no limit: it is not read before its turn.
MAX_WAITING_KEYS = 1000
# More than a queue ever has, of keys and of deliveries in flight: one that is not seen would be overtaken.
MAX_PLACES = 10 * MAX_WAITING_KEYS

Queue = tuple[int, int]

MAX_REMEMBERED = 20_000
# What other processes did since costs a probe per move, and the ledger forgets moves after days.
MAX_MOVES = 1000
BELIEVED_SECONDS = 3600.0


@dataclass(slots=True)
class Lane:
    """A queue of an ordered group while a batch is chosen from it.

    `places` are what is in flight and the first of each key that is held or parked, in their order.
    """

    places: list[Row] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)
    all_blocked: bool = False
    again: list[Row] = field(default_factory=list)

    @property
    def busy(self) -> bool:
        """Whether a batch of the queue is in flight."""
        return any(place.state == "flight" and place.waits for place in self.places)

    @property
    def is_full(self) -> bool:
        """Whether so many keys wait that no new entry may be looked at."""
        return len(self.places) >= MAX_WAITING_KEYS

    def lowest(self, next_offset: int) -> int:
        """The offset of its first place; without any, where the group goes on."""
        if len(self.places) >= MAX_PLACES:
            # Some were not read, and may be lower.
            return 0
        return self.places[0].queue_offset if self.places else next_offset

    def is_blocked(self, key: str | None) -> bool:
        return self.all_blocked or key in self.blocked

    def choose_again(self, places: Iterable[Row], wanted: int) -> None:
        """Takes what is due or no longer behind anything, in order; the rest blocks its key."""
        for place in places:
            if self.is_blocked(place.sharding_key):
                continue
            if _is_due(place) and len(self.again) < wanted:
                self.again.append(place)
            elif place.sharding_key == NO_KEY:
                self.all_blocked = True
            else:
                self.blocked.add(place.sharding_key)


def _is_due(place: Row) -> bool:
    return place.state == "parked" or (place.state == "held" and not place.waits)


async def lanes(batch: Batch, group_id: int, positions: Mapping[Queue, Position]) -> dict[Queue, Lane]:
    """The queues with what the group has in each; the caller holds the lock of the group's positions."""
    known = [runtime.part(Floors).of(group_id, queue, position) for queue, position in positions.items()]
    asked = {
        "group_id": group_id,
        "topic_id": [topic_id for topic_id, _ in positions],
        "queue_id": [queue_id for _, queue_id in positions],
        "floor": [floor.offset for floor in known],
        "floor_move": [floor.move for floor in known],
        "max_places": MAX_PLACES,
    }
    found: dict[Queue, Lane] = {queue: Lane() for queue in positions}
    for place in await batch.read(READ_PLACES, asked):
        found[place.topic_id, place.queue_id].places.append(place)
    lowest = {queue: found[queue].lowest(position.next_offset) for queue, position in positions.items()}
    runtime.part(Floors).see(batch, group_id, lowest, {queue: position.move for queue, position in positions.items()})
    return found


async def choose_again(batch: Batch, group_id: int, queue: Queue, lane: Lane, wanted: int) -> None:
    """Chooses what is handed out again: of each key whose first place is due, what follows it, too.

    `wanted` keys are looked into at most, and one place more of each than may be handed out: it blocks its key.
    """
    due = [place for place in lane.places if _is_due(place)][:wanted]
    following: Sequence[Row] = ()
    if due:
        asked = {
            "group_id": group_id,
            "topic_id": queue[0],
            "queue_id": queue[1],
            "sharding_key": [place.sharding_key for place in due],
            "after_offset": [place.queue_offset for place in due],
            "max_places": wanted,
        }
        following = await batch.read(READ_PLACES_OF_KEYS, asked)
    lane.choose_again(sorted([*lane.places, *following], key=attrgetter("queue_offset")), wanted)


async def new_entries(batch: Batch, queue: Queue, lane: Lane, position: Position, count: int) -> Sequence[Row]:
    """The heads of entries that no consumer of the group has had; none when the whole queue has to wait.

    More than `count` where some keys have to wait.
    """
    if lane.all_blocked or lane.is_full or count <= 0:
        return ()
    count = max(count, min(MAX_LOOKED_AT, position.lag)) if lane.blocked else count
    return await progress.heads(batch, [queue], [position.next_offset], [count])


def hand_out_again(batch: Batch, group_id: int, place: Row, invisible_seconds: float) -> int:
    """Has a place handed out again, and gives the nonce of the new delivery."""
    nonce = secrets.randbits(62)
    batch.insert(
        HAND_OUT_AGAIN,
        {
            "group_id": group_id,
            "topic_id": place.topic_id,
            "queue_id": place.queue_id,
            "queue_offset": place.queue_offset,
            "nonce": nonce,
            "invisible_seconds": invisible_seconds,
        },
    )
    return nonce


async def hold(batch: Batch, receipt: Row, delay_seconds: float | None = None) -> None:
    """Keeps a failed message in its place until its retry is due, or sends it to the dead letters."""
    failed = Failed(receipt)
    place: dict[str, Any] = {
        name: getattr(receipt, name) for name in ("group_id", "topic_id", "queue_id", "queue_offset")
    }
    if failed.delay is None:
        batch.insert(GIVE_UP_RECEIPTS, place)
        await publish(batch, await redelivery.dead_letter(receipt))
    else:
        wait = failed.delay_seconds if delay_seconds is None else delay_seconds
        batch.insert(HOLD_RECEIPTS, {**place, "wait_seconds": wait})


class Floor(NamedTuple):
    """All places of the group in the queue were at or behind `offset` when it had made so many moves there."""

    offset: int
    move: int
    seen_at: float


NONE = Floor(0, 0, 0.0)


class Floors:
    """The floors that a process remembers. One that is lost costs a longer look."""

    def __init__(self) -> None:
        self._floors: dict[tuple[int, Queue], Floor] = {}

    def of(self, group_id: int, queue: Queue, position: Position) -> Floor:
        """The floor of a queue, or NONE when too much may have happened since it was seen."""
        floor = self._floors.get((group_id, queue), NONE)
        fresh = time.monotonic() - floor.seen_at < BELIEVED_SECONDS
        return floor if fresh and position.move - floor.move <= MAX_MOVES else NONE

    def see(self, batch: Batch, group_id: int, offsets: Mapping[Queue, int], moves: Mapping[Queue, int]) -> None:
        """Remembers floors once the batch is durable: what it deleted comes back when it is not."""
        now = time.monotonic()

        def remember() -> None:
            if len(self._floors) >= MAX_REMEMBERED:
                self._floors.clear()
            for queue, offset in offsets.items():
                self._floors[group_id, queue] = Floor(offset, moves[queue], now)

        batch.after_commit(remember)
