"""Shares: the receives of one group and one topic to which one statement hands out waiting entries."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, takewhile

from delivery.groups import QueueProgress
from delivery.receive import packed, selection
from delivery.receive.deliveries import Handout, Receiver
from store.commit.batch import Batch
from store.queues import Queue
from store.segments import log


class Share:
    """The receives that share one page of messages. A receive with a page from the reserve is a share by itself."""

    def __init__(self, handouts: Sequence[Handout]) -> None:
        self.handouts = handouts
        self._receivers = [handout.receiver for handout in handouts]
        self._nonces = [receiver.new_nonce() for receiver in self._receivers]

    @property
    def receiver(self) -> Receiver:
        """The first receive."""
        return self._receivers[0]

    @property
    def wanted(self) -> int:
        """The number of messages that the receives ask for together."""
        return sum(receiver.max_messages for receiver in self._receivers)

    @property
    def parameters(self) -> dict[str, object]:
        """The receives and their queues, by the names of the statements' parameters."""
        return {
            "wanted_end": list(accumulate(receiver.max_messages for receiver in self._receivers)),
            "nonce": self._nonces,
            "invisible_seconds": [receiver.invisible_seconds for receiver in self._receivers],
            "only_whole": self.receiver.hold.is_small,
            "max_bytes": max(min(receiver.hold.page_bytes for receiver in self._receivers), 1),
            "queue_topic_id": [topic_id for topic_id, _ in self.receiver.queues],
            "queue_id": [queue_id for _, queue_id in self.receiver.queues],
        }

    def give(self, handed: bytes | None) -> None:
        """Gives each receive its entries, from the packed answer of a statement."""
        entries = packed.entries(self._nonces, self.receiver.queues, handed)
        for handout, its_entries in zip(self.handouts, entries, strict=True):
            handout.entries = its_entries

    def note_more(self, taken: int, reached: Mapping[Queue, QueueProgress], *, is_cut: bool) -> None:
        """Notes for each receive without an entry whether it has to read again at once.

        `taken`: the number of entries that were handed out. `is_cut`: whether further entries had no room.
        """
        for handout in self.handouts:
            hold = handout.receiver.hold
            hold.is_large = hold.is_large or (hold.is_small and is_cut and not taken)
            is_left = hold.is_large or is_cut or taken > 0 or selection.has_moved(handout, reached)
            handout.more = not handout.entries and is_left


def of(handouts: Sequence[Handout]) -> list[Share]:
    """Divides receives into shares: receives that share a page, and each receive with a page from the reserve."""
    found = [[handout for handout in handouts if not handout.receiver.hold.is_small]]
    found += [[handout] for handout in handouts if handout.receiver.hold.is_small]
    return [Share(share) for share in found if share]


async def read_bodies(batch: Batch, handouts: Sequence[Handout]) -> None:
    """Reads the first MAX_READ_BYTES of the handed out messages for all receives; each receive reads its other
    messages.
    """
    entries = [handed for handout in handouts for handed in handout.entries]
    room = takewhile(lambda size: size <= packed.MAX_READ_BYTES, accumulate(handed.body_bytes for handed in entries))
    if places := [handed.position for handed, _ in zip(entries, room, strict=False)]:
        rows = await batch.read(log.READ_MESSAGES, log.at(places))
        read = {(row.segment_id, row.log_offset): row for row in rows}
        for handout in handouts:
            handout.messages = read
