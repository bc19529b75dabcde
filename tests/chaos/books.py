"""The books of a storm: what was asked for and acknowledged, against what a broker has and hands out afterwards."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tests.chaos.ledgers import Place, holes

Found = Mapping[str, list[tuple[Place, str]]]
STATE_AFTER = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}
KINDS = (
    "lost",
    "phantom",
    "twice",
    "holes",
    "moved",
    "torn batches",
    "wrong or double outcomes",
    "early",
    "never delivered",
    "delivered after the ack",
)


@dataclass
class Books:
    """Every body is of one message. What was given up after an answer that no promise allows is in no book."""

    begun: set[str] = field(default_factory=set)
    # Acknowledged and visible, or to become so: by body, the place where the answer named it.
    visible: dict[str, tuple[str, Place] | None] = field(default_factory=dict)
    rolled_back: set[str] = field(default_factory=set)
    # All of a batch or a transaction, or nothing of it.
    together: list[tuple[str, ...]] = field(default_factory=list)
    # By id, the decision that was acknowledged.
    decisions: dict[str, str] = field(default_factory=dict)
    # By body, the id and the time that a delayed send was answered with.
    delayed: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    # By body, when an ack was answered; when the receive began that brought a body last. By the monotonic clock.
    acked_at: dict[str, float] = field(default_factory=dict)
    received_at: dict[str, float] = field(default_factory=dict)

    def is_delivered(self) -> bool:
        """Whether a consumer has had everything that was acknowledged as visible."""
        return self.visible.keys() <= self.received_at.keys()

    def flaws(
        self, found: Found, states: Mapping[str, str], visible_at: Mapping[str, datetime]
    ) -> dict[str, list[str]]:
        """By their kind, what contradicts the books: the topics' entries, the states of transactions by id, and since
        when delayed messages have been visible, by body."""
        flaws: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for kind, sentence in (
            *self._of_entries(found),
            *self._of_transactions(states),
            *self._of_deliveries(visible_at),
        ):
            flaws[kind].append(sentence)
        return flaws

    def _of_entries(self, found: Found) -> Iterator[tuple[str, str]]:
        places: defaultdict[str, list[tuple[str, Place]]] = defaultdict(list)
        for topic, entries in found.items():
            for place in holes(entries):
                yield "holes", f"{topic}: queue {place.queue_id} has a hole before {place.queue_offset}"
            for place, body in entries:
                places[body].append((topic, place))
        for body, promised in self.visible.items():
            if body not in places:
                yield "lost", f"{body} was acknowledged and is gone"
            elif promised is not None and promised not in places[body]:
                yield "moved", f"{body} was acknowledged at {promised} and is at {places[body]}"
        yield from self._of_places(places)

    def _of_places(self, places: Mapping[str, list[tuple[str, Place]]]) -> Iterator[tuple[str, str]]:
        for body, at in places.items():
            if len(at) > 1:
                yield "twice", f"{body} is there {len(at)} times"
            if body not in self.begun:
                yield "phantom", f"{body} is there and was never sent"
            if body in self.rolled_back:
                yield "wrong or double outcomes", f"{body} was rolled back and is visible"
        for bodies in self.together:
            if 0 < sum(body in places for body in bodies) < len(bodies):
                yield "torn batches", f"of {bodies} some are there and some are not"

    def _of_transactions(self, states: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for transaction_id, decision in self.decisions.items():
            if states.get(transaction_id) != STATE_AFTER[decision]:
                sentence = f"{transaction_id} was answered {decision} and is {states.get(transaction_id)}"
                yield "wrong or double outcomes", sentence

    def _of_deliveries(self, visible_at: Mapping[str, datetime]) -> Iterator[tuple[str, str]]:
        for body, (_, due) in self.delayed.items():
            if body in visible_at and visible_at[body] < due:
                yield "early", f"{body} is {due - visible_at[body]} early"
        for body in self.visible:
            if body not in self.received_at:
                yield "never delivered", f"{body} came to no consumer"
        for body, at in self.acked_at.items():
            if self.received_at[body] > at:
                yield "delivered after the ack", f"{body} came {self.received_at[body] - at:.1f} s after its ack"


def summary(flaws: Mapping[str, Iterable[str]]) -> str:
    """How many there are of each kind."""
    counts = Counter({kind: len(list(found)) for kind, found in flaws.items()})
    return ", ".join(f"{kind} {counts[kind]}" for kind in KINDS)
