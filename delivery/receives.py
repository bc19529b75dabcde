"""Receive: hands a group's next messages to one of its consumers and hides them from the others for a while."""

import secrets
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.conf import settings

from delivery import filters, groups, receipts
from delivery.filters import Filter
from delivery.groups import GroupFacts
from store import groupcommit, messages, readers, topics, wakeups
from store.database import Row
from store.errors import MessageIllegal
from store.groupcommit import Batch, Kind, Pending
from store.statements import Statement
from store.topics import TopicFacts

# A queue by its topic's id and its number.
Queue = tuple[int, int]

INSERT_RECEIPTS = Statement(__file__, "insert_receipts")

# Entries that one receive looks at in each queue, when a filter passes over most of them.
MAX_LOOKED_AT = 256
# A waiting consumer looks again by itself: a wake-up is a help, not a promise.
LOOK_AGAIN_SECONDS = 5.0


class Receive(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a consumer asks for."""

    topic: str
    filter: Any = None
    max_messages: int | None = None
    invisible_seconds: float | None = None
    wait_seconds: float = 0


@dataclass(slots=True)
class Take:
    """One receive, judged; `queues` are the (topic, queue) pairs it reads, the retries first."""

    group: GroupFacts
    topic: TopicFacts
    queues: list[Queue]
    wants: Filter | None
    max_messages: int
    invisible_seconds: float
    taken: list[tuple[Row, int]] = field(default_factory=list)
    # The filter passed over all that was looked at: there may be more behind it.
    passed_over: bool = False


async def receive(group_name: str, request: Receive) -> list[dict[str, Any]]:
    """A group's next messages of a topic, at most `max_messages`, hidden from the group for `invisible_seconds`.

    Waits up to `wait_seconds` for the first one; a waiting consumer costs no connection. Raises a Refusal when a rule
    is broken or the database is away.
    """
    take = await _judge(group_name, request)
    deadline = time.monotonic() + request.wait_seconds
    while True:
        entries: list[dict[str, Any]] = [] if take.group.paused else await groupcommit.submit(TAKES, take)
        left = deadline - time.monotonic()
        if entries or left <= 0:
            return entries
        if take.passed_over:
            continue
        topic_ids = {topic_id for topic_id, _ in take.queues}
        await wakeups.wait(topic_ids, take.group.id, min(left, LOOK_AGAIN_SECONDS))


async def _judge(group_name: str, request: Receive) -> Take:
    topic = await topics.for_reading(request.topic)
    wants = filters.parse(request.filter)
    max_messages = settings.MAX_RECEIVE_MESSAGES if request.max_messages is None else request.max_messages
    if not 1 <= max_messages <= settings.MAX_RECEIVE_MESSAGES:
        raise MessageIllegal(f"max_messages {max_messages} is not between 1 and {settings.MAX_RECEIVE_MESSAGES}.")
    if not 0 <= request.wait_seconds <= settings.MAX_WAIT_SECONDS:
        raise MessageIllegal(f"wait_seconds {request.wait_seconds} is not between 0 and {settings.MAX_WAIT_SECONDS}.")
    invisible = receipts.judge_invisible(request.invisible_seconds)
    group = await groups.for_consuming(group_name)
    return Take(
        group=group,
        topic=topic,
        queues=await _queues_of(group, topic),
        wants=wants,
        max_messages=max_messages,
        invisible_seconds=invisible,
    )


async def _queues_of(group: GroupFacts, topic: TopicFacts) -> list[Queue]:
    """A retried message comes before new ones; the topic's own queues take turns at being first."""
    retry = await groups.retry_topic(group.name)
    own = [(topic.id, queue_id) for queue_id in range(topic.queues)]
    first = secrets.randbelow(len(own))
    return [(retry.id, await groups.retry_queue_of(group.id, group.name, topic.id)), *own[first:], *own[:first]]


class Takes(Kind[Take]):
    """Receives are written in a batch: those of one group take turns, and read what they get in one statement."""

    async def decide(self, batch: Batch, pending: list[Pending[Take]]) -> None:
        for group_id in sorted({one.request.group.id for one in pending}):
            takes = [one.request for one in pending if one.request.group.id == group_id]
            await self._take_for_group(batch, group_id, takes)

    async def _take_for_group(self, batch: Batch, group_id: int, takes: list[Take]) -> None:
        queues = sorted({queue for take in takes for queue in take.queues})
        await readers.lock(batch, group_id, queues)
        found = await readers.positions(batch, group_id, queues)
        positions = {(row.topic_id, row.queue_id): Position.of(row, takes[0].group) for row in found}
        lanes = await self._read(batch, takes, positions)
        for take in takes:
            chosen = _choose(take, lanes, positions)
            take.passed_over = not chosen and any(positions[queue].moved for queue in take.queues)
            take.taken = [(row, secrets.randbits(62)) for row in chosen]
            for row, nonce in take.taken:
                batch.insert(INSERT_RECEIPTS, _receipt(take, row, nonce))
        for queue, position in positions.items():
            if position.moved:
                readers.move(batch, group_id, queue, position.move + 1, position.next_offset)

    async def _read(
        self, batch: Batch, takes: list[Take], positions: dict[Queue, "Position"]
    ) -> dict[Queue, deque[Row]]:
        """The entries that the takes may get. Offsets are dense: how many each queue gives is known beforehand."""
        counts = _allot(takes, positions)
        lanes: dict[Queue, deque[Row]] = {queue: deque() for queue in counts}
        if counts:
            queues = list(counts)
            starts = [positions[queue].next_offset for queue in queues]
            for row in await readers.read(batch, queues, starts, list(counts.values())):
                lanes[row.entry_topic_id, row.entry_queue_id].append(row)
        return lanes

    async def record(self, batch: Batch, pending: list[Pending[Take]]) -> None:
        for one in pending:
            one.outcome = [entry(one.request, row, nonce) for row, nonce in one.request.taken]


def _allot(takes: list[Take], positions: dict[Queue, "Position"]) -> dict[Queue, int]:
    """How many entries to read from each queue: what the takes ask for, from as few queues as have it."""
    counts: Counter[Queue] = Counter()
    for take in takes:
        wanted = take.max_messages
        for queue in take.queues:
            left = positions[queue].lag - counts[queue]
            if take.wants is not None:
                counts[queue] += min(left, MAX_LOOKED_AT)
            elif wanted and left > 0:
                counts[queue] += min(left, wanted)
                wanted -= min(left, wanted)
    return {queue: count for queue, count in counts.items() if count > 0}


def _choose(take: Take, lanes: dict[Queue, deque[Row]], positions: dict[Queue, "Position"]) -> list[Row]:
    """A take's messages, in the order of its queues; the entries that its filter passes over are done for the group."""
    chosen: list[Row] = []
    for queue in take.queues:
        lane = lanes.get(queue, ())
        while lane and len(chosen) < take.max_messages:
            row = lane.popleft()
            positions[queue].pass_over(row.queue_offset)
            if take.wants is None or take.wants(row):
                chosen.append(row)
    return chosen


TAKES = Takes()


@dataclass(slots=True)
class Position:
    """Where a group stands in a queue while a batch is written."""

    next_offset: int
    max_offset: int
    move: int
    moved: bool

    @classmethod
    def of(cls, row: Row, group: GroupFacts) -> "Position":
        """From the ledger; a group that never read the queue starts where `start_at` says, and keeps to that."""
        if row.next_offset is None:
            latest = group.start_at == "latest"
            return cls(row.max_offset if latest else row.min_offset, row.max_offset, 0, latest)
        return cls(max(row.next_offset, row.min_offset), row.max_offset, row.move, False)

    @property
    def lag(self) -> int:
        return self.max_offset - self.next_offset

    def pass_over(self, offset: int) -> None:
        self.next_offset = offset + 1
        self.moved = True


def _receipt(take: Take, row: Row, nonce: int) -> dict[str, object]:
    return {
        "group_id": take.group.id,
        "topic_id": row.entry_topic_id,
        "queue_id": row.entry_queue_id,
        "queue_offset": row.queue_offset,
        "nonce": nonce,
        "invisible_seconds": take.invisible_seconds,
        "log_segment": row.segment_id,
        "log_offset": row.log_offset,
        "tags_code": row.tags_code,
        "reconsume_times": row.reconsume_times,
        "origin_topic_id": take.topic.id,
    }


def entry(take: Take, row: Row, nonce: int) -> dict[str, Any]:
    """A delivery as the API gives it out."""
    message = messages.given_out(row, take.topic.name)
    message["reconsume_times"] = row.reconsume_times
    if row.reconsume_times:
        message["properties"] = {**retry_properties(take, row), **_properties(message)}
    return {
        "message": message,
        "queue_id": row.entry_queue_id,
        "queue_offset": row.queue_offset,
        "delivery_attempt": row.reconsume_times + 1,
        "receipt_handle": receipts.handle(
            take.group.id, row.entry_topic_id, row.entry_queue_id, row.queue_offset, nonce
        ),
    }


def _properties(message: dict[str, object]) -> dict[str, str]:
    found = message.get("properties")
    return found if isinstance(found, dict) else {}


def retry_properties(take: Take, row: Row) -> dict[str, str]:
    """What RocketMQ's consumers read of a retried message."""
    return {
        "RETRY_TOPIC": take.topic.name,
        "ORIGIN_MESSAGE_ID": str(row.message_id),
        "RECONSUME_TIME": str(row.reconsume_times),
    }
