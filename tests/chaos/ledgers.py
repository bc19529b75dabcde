"""Ledgers: what a broker has acknowledged before an accident, compared with what it has afterwards."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.broker.wire import Document


@dataclass(frozen=True)
class Place:
    """Where a message is visible."""

    queue_id: int
    queue_offset: int


@dataclass
class Ledger:
    """Answers that were given: messages that are visible, and messages that never will be."""

    visible: dict[str, Place] = field(default_factory=dict)
    rolled_back: set[str] = field(default_factory=set)

    def sent(self, body: str, answer: Document) -> None:
        """A send or a commit was acknowledged with this place."""
        self.visible[body] = Place(answer["queue_id"], answer["queue_offset"])

    def flaws(self, found: Iterable[tuple[Place, str]]) -> list[str]:
        """What a topic's queues hold against what was acknowledged."""
        entries = sorted(found, key=lambda entry: (entry[0].queue_id, entry[0].queue_offset))
        places = {body: place for place, body in entries}
        times = Counter(body for _, body in entries)
        flaws = [f"{body} was acknowledged and is gone" for body in self.visible if body not in places]
        flaws += [
            f"{body} was acknowledged at {place} and is at {places[body]}"
            for body, place in self.visible.items()
            if body in places and places[body] != place
        ]
        flaws += [f"{body} was rolled back and is visible" for body in self.rolled_back if body in places]
        flaws += [f"{body} is there {times[body]} times" for body in times if times[body] > 1]
        flaws += [f"{body} is there and was never acknowledged" for body in places if body not in self.visible]
        return flaws + [f"queue {place.queue_id} has a hole before {place.queue_offset}" for place in holes(entries)]


def holes(entries: list[tuple[Place, str]]) -> list[Place]:
    """The places whose predecessor is missing."""
    there = {place for place, _ in entries}
    return [
        place
        for place in sorted(there, key=lambda place: (place.queue_id, place.queue_offset))
        if place.queue_offset and Place(place.queue_id, place.queue_offset - 1) not in there
    ]
