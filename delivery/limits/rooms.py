"""Rooms: how many more messages of each value may be handed out, while a batch chooses messages of an ordered group."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from delivery.limits import keys
from delivery.limits.bounds import Limits
from delivery.rows import GroupFacts
from store.commit.batch import Batch
from store.db.statements import Statement
from store.queues import Queue


class Standing(NamedTuple):
    """A value, its deliveries in flight, counted up to the largest limit of the group, and the seconds until its bucket
    is full.
    """

    value: str
    in_flight: int
    due_seconds: float


FIND_STANDINGS_OF_VALUES = Statement(__file__, "find_standings_of_values", Standing)
COUNT_TOWARDS_LIMITS = Statement(__file__, "count_towards_limits")


@dataclass(slots=True)
class Rooms:
    """The rooms of a group's values in a topic; without limits each value has room.

    The caller holds the lock of the group's progress in the topic.
    """

    group_id: int = 0
    topic_id: int = 0
    limits: Limits | None = None
    # The seconds after which to look again, because a value had no room; None: each value that was looked at had room.
    again_seconds: float | None = None
    _left: dict[str, int] = field(default_factory=dict)
    _waits: dict[str, float] = field(default_factory=dict)
    _taken: list[dict[str, object]] = field(default_factory=list)

    @classmethod
    def of(cls, group: GroupFacts, topic_id: int) -> "Rooms":
        """The object for a group in a topic. It has read no rooms yet."""
        return cls(group.id, topic_id, None if group.limits is None else Limits.of(group.limits))

    def _value(self, key: str) -> str:
        assert self.limits is not None
        return keys.NO_KEY if self.limits.by == keys.GROUP else key[: keys.MAX_KEY]

    async def read(self, batch: Batch, sharding_keys: Iterable[str]) -> None:
        """Reads how much room the values of these keys have, each value once. Call it before `has` and `take`."""
        if self.limits is None:
            return
        wanted = {self._value(key) for key in sharding_keys} - self._left.keys()
        if not wanted:
            return
        parameters = {
            "group_id": self.group_id,
            "topic_id": self.topic_id,
            "value": sorted(wanted),
            "max_in_flight": self.limits.most_in_flight,
        }
        for row in await batch.read(FIND_STANDINGS_OF_VALUES, parameters):
            room = self.limits.limit(row.value).room(row.in_flight, row.due_seconds)
            self._left[row.value], self._waits[row.value] = room.messages, room.wait_seconds

    def has(self, key: str) -> bool:
        """Whether a message of this sharding key may be handed out. If not, sets `again_seconds`, after which its value
        may have room.
        """
        if self.limits is None or self._left[value := self._value(key)] > 0:
            return True
        wait = self._waits[value]
        self.again_seconds = wait if self.again_seconds is None else min(self.again_seconds, wait)
        return False

    def take(self, key: str, queue: Queue, queue_offset: int) -> bool:
        """Uses the room for one message, which is then handed out. Returns False if the value has no room."""
        if self.limits is None:
            return True
        if not self.has(key):
            return False
        value = self._value(key)
        limit = self.limits.limit(value)
        self._left[value] -= 1
        row: dict[str, object] = {
            "group_id": self.group_id,
            "topic_id": self.topic_id,
            "value": value,
            "entry_topic_id": queue[0],
            "entry_queue_id": queue[1],
            "queue_offset": queue_offset,
            "is_counted": limit.in_flight is not None,
            "token_seconds": limit.seconds,
        }
        self._taken.append(row)
        return True

    def write(self, batch: Batch) -> None:
        """Adds to the batch the statements that count the messages, after the statements that insert receipts."""
        for row in self._taken:
            batch.insert(COUNT_TOWARDS_LIMITS, row)
