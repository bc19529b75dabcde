"""Limited receives: messages of a value that is at its limit wait, and messages of other values are handed out.

A group with limits reads ahead as a fair group does, and its keys take turns. Deliveries in flight are counted from the
receipts of the value, so no crash loses a place. The lock of the group's progress in a topic makes the count exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from delivery.groups import QueueProgress
from delivery.limits import keys
from delivery.limits.bounds import Limits
from delivery.limits.rooms import Standing, Walk, standings
from delivery.receive import shares, turns
from delivery.receive.deliveries import Handout, Receiver
from delivery.receive.turns import Turns
from store.commit.batch import Batch
from store.process import runtime
from store.queues import Queue

# The most keys at which one receive looks for room: 1,024 keys that are at their limit take about 10 ms. The next
# receive goes on behind them, after this time.
MAX_LOOKED = 1024
LOOK_ON_SECONDS = 0.1


@dataclass(slots=True)
class Line:
    """The keys whose messages a receive may be handed now, in the order of their turns, with the room of each."""

    limits: Limits
    rooms: dict[str, int] = field(default_factory=dict)
    # The last key that was looked at.
    last_key: str = keys.NO_KEY
    # When a key without room is to be looked at again; None: each key that was looked at has room.
    again_seconds: float | None = None

    def add(self, found: Standing) -> None:
        """Adds a key, or notes when to look at it again."""
        self.last_key = found.fair_key
        room = self.limits.limit(self.value(found.fair_key)).room(found.in_flight, found.due_seconds)
        if room.messages:
            self.rooms[found.fair_key] = room.messages
        else:
            self.look_again(room.wait_seconds)

    def look_again(self, seconds: float) -> None:
        """Notes that a key may have room after this time."""
        self.again_seconds = seconds if self.again_seconds is None else min(self.again_seconds, seconds)

    def value(self, key: str) -> str:
        """The value by which the messages of a key are limited."""
        return keys.NO_KEY if self.limits.by == keys.GROUP else key

    def room(self, wanted: int) -> int:
        """The number of messages that may be handed out, at most `wanted`."""
        if self.limits.by == keys.GROUP:
            return min([wanted, *self.rooms.values()]) if self.rooms else 0
        return min(sum(self.rooms.values()), wanted)

    def choice(self, wanted: int) -> dict[str, object]:
        """The parameters of HAND_OUT_BY_TURNS that say which entries."""
        limits = [self.limits.limit(self.value(key)) for key in self.rooms]
        return {
            "wanted": [self.room(wanted)],
            "fair_key": list(self.rooms),
            "value": [self.value(key) for key in self.rooms],
            "room": list(self.rooms.values()),
            "is_counted": [limit.in_flight is not None for limit in limits],
            "token_seconds": [limit.seconds for limit in limits],
        }


async def by_value(batch: Batch, handouts: Sequence[Handout], reached: Mapping[Queue, QueueProgress]) -> None:
    """Hands waiting messages to the receives of one group with limits and one topic, by turns as `turns.by_key`, but
    only messages of values that are below their limits.
    """
    present = [handout for handout in handouts if not handout.receiver.is_gone]
    if not present:
        return
    receiver = present[0].receiver
    limits, turn = Limits.of(receiver.group.limits), runtime.part(Turns).of(receiver)
    await turn.count(batch, receiver.group.id)
    more = 0 if turn.is_full else await turns.read_ahead(batch, receiver, reached)
    key = turn.key
    for share in shares.of(present):
        line = await _line(batch, receiver, limits, key, share.wanted)
        key, taken, is_cut = line.last_key, 0, False
        if line.room(share.wanted):
            found = await turns.hand_out(batch, share, key, line.choice(share.wanted))
            key, taken, is_cut = found.last_key, found.taken, found.cut
        more -= taken
        share.note_more(taken, reached, is_cut=is_cut)
        for handout in share.handouts:
            handout.again_seconds = line.again_seconds
    batch.after_commit(partial(turn.move_on, key, more))
    await shares.read_bodies(batch, present)


async def _line(batch: Batch, receiver: Receiver, limits: Limits, after: str, wanted: int) -> Line:
    """The keys with room, from the key after `after` round to `after`. The search ends when they have room for `wanted`
    messages together, or after MAX_LOOKED keys.
    """
    line = Line(limits, last_key=after)
    looked, is_round, most = 0, False, wanted
    while looked < MAX_LOOKED:
        walk = Walk(line.last_key, is_round, after, most)
        found = await standings(batch, receiver.group.id, receiver.topic.id, limits, walk)
        for each in found:
            line.add(each)
        if len(found) < most or line.room(wanted) >= wanted or limits.by == keys.GROUP:
            return line
        looked, is_round, most = looked + most, found[-1].is_round, min(4 * most, MAX_LOOKED)
    line.look_again(LOOK_ON_SECONDS)
    return line
