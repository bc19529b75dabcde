"""Plain sends in a pipelined batch: messages of one request, stored and entered by one statement with all others."""

import contextlib
import struct
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from scheduling import alarms, recalls
from sending.answers import Sent
from store.commit.pipelined import Request
from store.db import arrays
from store.db.pipeline import Call, Results
from store.messages import Record, accept
from store.messages.accept import Parcel
from store.notices import notifier
from store.process import runtime
from store.queues import SEND_MESSAGES, SKIP_STORED

# Place, log offset and queue offset of a message that SEND_MESSAGES stored.
PLACED = struct.Struct("!iqq")


class Detours:
    """The queues for which messages with a sharding key are on the stepwise way: later ones follow, in their order."""

    def __init__(self) -> None:
        self._queues: Counter[tuple[int, int]] = Counter()

    def precede(self, records: Sequence[Record]) -> bool:
        """Whether one of the messages, which all go to one queue, would overtake a message of that queue."""
        return bool(self._queues) and _queue_of(records[0]) in self._queues and _have_keys(records)

    @contextlib.contextmanager
    def of(self, record: Record) -> Iterator[None]:
        """The message, or its batch, goes the stepwise way within the block."""
        queue = _queue_of(record)
        self._queues[queue] += 1
        try:
            yield
        finally:
            self._queues[queue] -= 1
            if not self._queues[queue]:
                del self._queues[queue]


def _queue_of(record: Record) -> tuple[int, int]:
    return record.topic_id, record.queue_id


def _have_keys(records: Sequence[Record]) -> bool:
    for record in records:  # noqa: SIM110  # almost always one: a generator takes three times as long
        if record.sharding_key is not None:
            return True
    return False


@dataclass(slots=True, frozen=True)
class Level:
    """Where a message waits for its delay level: a queue of the schedule topic, for so long."""

    topic_id: int
    queue_id: int
    seconds: int


class Sending(Request[list[Sent]]):
    """Messages of one request, for one queue, in a pipelined batch: stored at consecutive offsets, or none of them."""

    __slots__ = ("level", "parcel", "queue")
    ORDER = 2

    def __init__(self, parcel: Parcel, size: int, level: Level | None = None) -> None:
        first = parcel.records[0]
        chosen = [message_id.bytes for message_id in parcel.repeatable]
        super().__init__(first.message_id.bytes, size, chosen, ordered=_have_keys(parcel.records))
        self.parcel = parcel
        self.level = level
        # The queue that the messages are entered in now.
        self.queue = _queue_of(first) if level is None else (level.topic_id, level.queue_id)

    @property
    def overtakes(self) -> bool:
        return self.ordered and runtime.part(Detours).precede(self.parcel.records)

    @classmethod
    def queues(cls, requests: Sequence[Self]) -> Iterable[tuple[int, int]]:
        return [request.queue for request in requests]

    @classmethod
    def calls(cls, requests: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        columns = {**accept.contents(_records_of(requests)), **_columns_of_levels(requests), "segment_id": segment_id}
        repeatable = [
            (number, id_) for number, request in enumerate(requests, start=1) for id_ in request.parcel.repeatable
        ]
        places = _places_of_queues(requests)
        if repeatable:
            yield _skip_stored(requests, places, repeatable)
        numbers = [number for number, request in enumerate(requests, start=1) for _ in request.parcel.records]
        of_queues = _columns_of_queues(requests, places)
        yield Call(SEND_MESSAGES, {**columns, **of_queues, "request": arrays.int4s(numbers if repeatable else ())})

    @classmethod
    def settle(cls, requests: Sequence[Self], results: Results) -> None:
        placed = results[SEND_MESSAGES].get_value(0, 1)
        if placed is None:
            return
        stored_at = arrays.moment(results[SEND_MESSAGES].get_value(0, 0) or b"")
        by_place = [request for request in requests for _ in request.parcel.records]
        records = _records_of(requests)
        visible: Counter[int] = Counter()
        # In the order of their places within each queue, and so within each request.
        for place, log_offset, queue_offset in PLACED.iter_unpack(placed):
            request, record = by_place[place - 1], records[place - 1]
            topic = request.parcel.topic
            sent = Sent(record.message_id, topic.name, record.queue_id, queue_offset, log_offset, stored_at)
            if request.answer is None:
                request.answer = []
            request.answer.append(sent)
            if request.level is None:
                visible[topic.id] += 1
            else:
                _answer_delayed(sent, request.level)
        notifier.notify(visible)


def _places_of_queues(requests: Sequence[Sending]) -> dict[tuple[int, int], int]:
    """The queues that the messages are entered in, each with its place among them, from 1 on."""
    places: dict[tuple[int, int], int] = {}
    for request in requests:
        places.setdefault(request.queue, len(places) + 1)
    return places


def _skip_stored(
    requests: Sequence[Sending], places: dict[tuple[int, int], int], repeatable: Sequence[tuple[int, uuid.UUID]]
) -> Call:
    """Leaves out the requests of which a message is stored; `repeatable` are numbers of requests with ids of theirs."""
    return Call(
        SKIP_STORED,
        {
            "request_queue": arrays.int4s([places[request.queue] for request in requests]),
            "request_messages": arrays.int4s([len(request.parcel.records) for request in requests]),
            "repeatable": arrays.uuids([message_id.bytes for _, message_id in repeatable]),
            "repeatable_request": arrays.int4s([number for number, _ in repeatable]),
        },
    )


def _columns_of_queues(requests: Sequence[Sending], places: dict[tuple[int, int], int]) -> dict[str, bytes]:
    """The queues, and of each message the place of its queue and its number among the messages of that queue."""
    queue: list[int] = []
    rank: list[int] = []
    ranked = dict.fromkeys(places, 0)
    for request in requests:
        before, count = ranked[request.queue], len(request.parcel.records)
        ranked[request.queue] = before + count
        queue += [places[request.queue]] * count
        rank += range(before + 1, before + count + 1)
    return {
        "entry_topic_id": arrays.int4s([topic_id for topic_id, _ in places]),
        "entry_queue_id": arrays.int4s([queue_id for _, queue_id in places]),
        "queue": arrays.int4s(queue),
        "rank": arrays.int4s(rank),
    }


def _columns_of_levels(requests: Sequence[Sending]) -> dict[str, bytes]:
    """How long messages wait, and their own queues; empty arrays when none of them has a delay, as almost always."""
    waiting: Sequence[Sending] = ()
    if [request.level for request in requests].count(None) < len(requests):
        waiting = [request for request in requests for _ in request.parcel.records]
    records = _records_of(requests) if waiting else ()
    return {
        "topic_id": arrays.int4s([record.topic_id for record in records]),
        "queue_id": arrays.int4s([record.queue_id for record in records]),
        "delay_seconds": arrays.float8s([None if one.level is None else one.level.seconds for one in waiting]),
    }


def _records_of(requests: Sequence[Sending]) -> list[Record]:
    return [record for request in requests for record in request.parcel.records]


def _answer_delayed(sent: Sent, level: Level) -> None:
    """A message that waits in the queue of its level has no offset in its own yet."""
    assert sent.queue_offset is not None
    sent.deliver_at = sent.stored_at + timedelta(seconds=level.seconds)
    sent.recall_handle = recalls.handle(sent.message_id, None, level.queue_id, sent.queue_offset)
    sent.queue_offset = None
    alarms.set_now(level.seconds)
