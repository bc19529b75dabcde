"""Consumer groups of the broker within the process: deliveries, invisible times, retries and dead letters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mqbroker_client.calls import Document
from mqbroker_client.ids import uuid7
from mqbroker_client.testing.topics import DELAY_LEVELS, Topics, refused

INVISIBLE_SECONDS = 60
MAX_RECONSUME_TIMES = 16
# The first retry waits for level 3.
FIRST_RETRY_LEVEL = 3


@dataclass(slots=True)
class Pending:
    """An entry that a group was handed and has not acked: in flight until `due`, then handed out again."""

    entry: Document
    due: datetime
    attempts: int = 0
    #: None while it waits for its retry.
    receipt_handle: str | None = None


@dataclass(slots=True)
class Group:
    reached: dict[tuple[str, int], int] = field(default_factory=dict)
    pending: list[Pending] = field(default_factory=list)


@dataclass(slots=True)
class Groups:
    """All consumer groups by their names, made at their first receive."""

    topics: Topics
    now: Callable[[], datetime]
    known: dict[str, Group] = field(default_factory=dict)

    def receive(
        self, name: str, topic: str, max_messages: int, invisible_seconds: float | None = None, **more: Any
    ) -> Document:
        """POST /v1/consumer-groups/{group}/receive."""
        if more.get("filter") not in (None, "*"):
            raise NotImplementedError("the broker of tests has no filters: use a real one")
        group = self.known.setdefault(name, Group())
        until = self.now() + timedelta(seconds=invisible_seconds or INVISIBLE_SECONDS)
        again = self._due(name, group, topic)[:max_messages]
        chosen = again + self._new(group, topic, max_messages - len(again))
        for one in chosen:
            one.attempts, one.due, one.receipt_handle = one.attempts + 1, until, str(uuid7())
        return {"messages": [self._document(one) for one in chosen]}

    def settle(self, name: str, verb: str, receipt_handles: Sequence[str], **more: Any) -> Document:
        """POST /v1/consumer-groups/{group}/ack, nack and extend."""
        if name not in self.known:
            raise refused(404, "group_not_exist", f"There is no consumer group {name}.")
        return {"results": [self._settle(self.known[name], verb, handle, **more) for handle in receipt_handles]}

    def read(self, name: str) -> Document:
        """GET /v1/consumer-groups/{group}."""
        if name not in self.known:
            raise refused(404, "group_not_exist", f"There is no consumer group {name}.")
        return {"name": name, "ordered": False}

    def _due(self, name: str, group: Group, topic: str) -> list[Pending]:
        found = [one for one in group.pending if one.entry["message"]["topic"] == topic and one.due <= self.now()]
        dead = [one for one in found if one.attempts > MAX_RECONSUME_TIMES]
        for one in dead:
            group.pending.remove(one)
            letter = one.entry["message"] | {"topic": f"%DLQ%{name}"}
            self.topics.append(letter, 0)
        return [one for one in found if one not in dead]

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

    def _settle(
        self,
        group: Group,
        verb: str,
        handle: str,
        delay_seconds: float | None = None,
        invisible_seconds: float = INVISIBLE_SECONDS,
        **_: Any,
    ) -> Document:
        found = next((one for one in group.pending if one.receipt_handle == handle and one.due > self.now()), None)
        if found is None:
            return {"receipt_handle": handle, "status": 410}
        if verb == "ack":
            group.pending.remove(found)
        elif verb == "extend":
            found.due = self.now() + timedelta(seconds=invisible_seconds)
        else:
            level = min(FIRST_RETRY_LEVEL + found.attempts - 1, len(DELAY_LEVELS))
            wait = DELAY_LEVELS[level - 1] if delay_seconds is None else delay_seconds
            found.due, found.receipt_handle = self.now() + timedelta(seconds=wait), None
        return {"receipt_handle": handle, "status": 200}

    def _document(self, one: Pending) -> Document:
        message = one.entry["message"] | {"reconsume_times": one.attempts - 1}
        own = {"message": message, "delivery_attempt": one.attempts, "receipt_handle": one.receipt_handle}
        return one.entry | own
