"""Consumer groups of the broker inside the process: deliveries, invisible times, retries and dead letters."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mqbroker_client.contrib.testing.topics import DELAY_LEVELS, Topics, refused
from mqbroker_client.core.documents import Document
from mqbroker_client.core.ids import uuid7

INVISIBLE_SECONDS = 60
MAX_RECONSUME_TIMES = 16
#: The key of messages without a sharding key. In an ordered group no later message may overtake such a message.
NO_KEY = ""
# The first retry waits for level 3.
FIRST_RETRY_LEVEL = 3
#: The retry delay of an ordered group.
ORDERED_RETRY_SECONDS = 1


@dataclass(slots=True)
class Pending:
    """An entry that was handed to a group and not acked: in flight until `due`, then delivered again."""

    entry: Document
    due: datetime
    attempts: int = 0
    #: None while it waits for its retry, or in an ordered group for an earlier message of its key.
    receipt_handle: str | None = field(default=None, repr=False)
    #: Whether its previous delivery ended only because the invisible time was over.
    alone: bool = False

    @property
    def key(self) -> str:
        return str(self.entry["message"].get("sharding_key") or NO_KEY)

    def lies_in(self, topic: str, queue_id: int) -> bool:
        return bool(self.entry["read_from"] == topic and self.entry["queue_id"] == queue_id)


@dataclass(slots=True)
class Group:
    ordered: bool = False
    max_reconsume_times: int = MAX_RECONSUME_TIMES
    reached: dict[tuple[str, int], int] = field(default_factory=dict)
    pending: list[Pending] = field(default_factory=list)


@dataclass(slots=True)
class Groups:
    """All consumer groups by their names, made by a PUT or at their first receive."""

    topics: Topics
    now: Callable[[], datetime]
    known: dict[str, Group] = field(default_factory=dict)

    def receive(
        self,
        name: str,
        topic: str,
        max_messages: int,
        invisible_seconds: float | None = None,
        ack: Sequence[str] = (),
        **more: Any,
    ) -> Document:
        """POST /v1/consumer-groups/{group}/receive."""
        if more.get("filter") not in (None, "*"):
            raise NotImplementedError("the broker of tests has no filters: use a real one")
        group = self.known.setdefault(name, Group())
        until = self.now() + timedelta(seconds=invisible_seconds or INVISIBLE_SECONDS)
        acked = {"acked": [self._settle(group, "ack", handle) for handle in ack]} if ack else {}
        self._bury_dead(name, group, topic)
        chosen = _apart((self._in_order if group.ordered else self._in_any_order)(group, topic, max_messages))
        for one in chosen:
            one.alone = one.attempts > 0 and one.receipt_handle is not None
            one.attempts, one.due, one.receipt_handle = one.attempts + 1, until, str(uuid7())
        return {"messages": [self._document(one) for one in chosen], **acked}

    def settle(self, name: str, verb: str, receipt_handles: Sequence[str], **more: Any) -> Document:
        """POST /v1/consumer-groups/{group}/ack, nack, return and extend."""
        if name not in self.known:
            raise refused(404, "group_not_exist", f"There is no consumer group {name}.")
        if "messages" in more:
            return self._forward(self.known[name], receipt_handles, more["messages"])
        return {"results": [self._settle(self.known[name], verb, handle, **more) for handle in receipt_handles]}

    def read(self, name: str) -> Document:
        """GET /v1/consumer-groups/{group}."""
        if name not in self.known:
            raise refused(404, "group_not_exist", f"There is no consumer group {name}.")
        found = self.known[name]
        return {"name": name, "ordered": found.ordered, "max_reconsume_times": found.max_reconsume_times}

    def put(self, name: str, **settings: Any) -> Document:
        """PUT /v1/consumer-groups/{group}."""
        if unknown := settings.keys() - {"ordered", "max_reconsume_times"}:
            raise NotImplementedError(f"the broker of tests has no {', '.join(unknown)} of a group: use a real one")
        group = self.known.setdefault(name, Group())
        group.ordered = settings.get("ordered", group.ordered)
        group.max_reconsume_times = settings.get("max_reconsume_times", group.max_reconsume_times)
        return self.read(name)

    def _bury_dead(self, name: str, group: Group, topic: str) -> None:
        for one in self._due(group, topic):
            if one.attempts > group.max_reconsume_times:
                group.pending.remove(one)
                # The message of a dead letter still names the topic to which it was first sent.
                self.topics.append(one.entry["message"], 0, topic=f"%DLQ%{name}")

    def _due(self, group: Group, topic: str) -> list[Pending]:
        return [one for one in group.pending if one.entry["read_from"] == topic and one.due <= self.now()]

    def _in_any_order(self, group: Group, topic: str, count: int) -> list[Pending]:
        again = self._due(group, topic)[:count]
        return again + self._new(group, topic, count - len(again))

    def _in_order(self, group: Group, topic: str, count: int) -> list[Pending]:
        """The entries to hand out, from the first queue that has entries and no delivery in flight."""
        for queue_id, queue in enumerate(self.topics.of(topic)):
            waiting = [one for one in group.pending if one.lies_in(topic, queue_id)]
            if any(one.receipt_handle and one.due > self.now() for one in waiting):
                continue
            if chosen := self._next_of(group, queue, sorted(waiting, key=_offset), count):
                return chosen
        return []

    def _next_of(self, group: Group, queue: list[Document], waiting: list[Pending], count: int) -> list[Pending]:
        """Due retries and then new entries; without entries that follow an undelivered message with the same key."""
        chosen: list[Pending] = []
        blocked: set[str] = set()
        for one in itertools.chain(waiting, self._unread(group, queue)):
            if one.key in blocked:
                continue
            if one.due <= self.now():
                chosen.append(one)
            else:
                blocked.add(one.key)
            if len(chosen) == count or NO_KEY in blocked:
                break
        return chosen

    def _unread(self, group: Group, queue: list[Document]) -> Iterator[Pending]:
        """The entries that were not handed to the group yet, each as a Pending that is due now."""
        for entry in queue:
            place = entry["read_from"], entry["queue_id"]
            if entry["queue_offset"] >= group.reached.get(place, 0):
                group.reached[place] = entry["queue_offset"] + 1
                group.pending.append(Pending(entry, self.now()))
                yield group.pending[-1]

    def _new(self, group: Group, topic: str, count: int) -> list[Pending]:
        found: list[Pending] = []
        for queue_id, queue in enumerate(self.topics.of(topic)):
            at = group.reached.get((topic, queue_id), 0)
            taken = queue[at : at + max(count, 0)]
            group.reached[topic, queue_id] = at + len(taken)
            count -= len(taken)
            found += [Pending(entry, self.now()) for entry in taken]
        group.pending += found
        return found

    def _forward(self, group: Group, handles: Sequence[str], messages: Sequence[Document]) -> Document:
        """An ack with messages: both are done, or neither is. A repetition gets the first answer."""
        missing = [handle for handle in handles if self._in_flight(group, handle) is None]
        before = [self.topics.sent_before(message) for message in messages]
        if missing and not (all(before) and len(missing) == len(handles)):
            raise refused(410, "receipt_expired", f"The receipt {missing[0]} is acked, or its time is over.")
        for message in messages:
            self.topics.of(message["topic"])
        results = [self._settle(group, "ack", handle) | {"status": 200} for handle in handles]
        return {"results": results, "messages": [self.topics.send(**message) for message in messages]}

    def _in_flight(self, group: Group, handle: str) -> Pending | None:
        return next((one for one in group.pending if one.receipt_handle == handle and one.due > self.now()), None)

    def _settle(
        self,
        group: Group,
        verb: str,
        handle: str,
        delay_seconds: float | None = None,
        invisible_seconds: float = INVISIBLE_SECONDS,
        **_: Any,
    ) -> Document:
        found = self._in_flight(group, handle)
        if found is None:
            return {"receipt_handle": handle, "status": 410}
        if verb == "ack":
            group.pending.remove(found)
        elif verb == "extend":
            found.due = self.now() + timedelta(seconds=invisible_seconds)
        elif verb == "return":
            found.attempts, found.due, found.receipt_handle = found.attempts - 1, self.now(), None
        else:
            level = min(FIRST_RETRY_LEVEL + found.attempts - 1, len(DELAY_LEVELS))
            default = ORDERED_RETRY_SECONDS if group.ordered else DELAY_LEVELS[level - 1]
            wait = default if delay_seconds is None else delay_seconds
            found.due, found.receipt_handle = self.now() + timedelta(seconds=wait), None
        return {"receipt_handle": handle, "status": 200}

    def _document(self, one: Pending) -> Document:
        message = one.entry["message"] | {"reconsume_times": one.attempts - 1}
        own = {"message": message, "delivery_attempt": one.attempts, "receipt_handle": one.receipt_handle}
        return one.entry | own | ({"alone": True} if one.alone else {})


def _apart(chosen: list[Pending]) -> list[Pending]:
    """The entries to deliver now: a retry is delivered alone, so the other entries wait."""
    if chosen and chosen[0].attempts:
        return chosen[:1]
    return list(itertools.takewhile(lambda one: not one.attempts, chosen))


def _offset(one: Pending) -> int:
    return int(one.entry["queue_offset"])
