"""Messages packed for the pipelined batch: the columns of its two statements about sends, and what these answer."""

import struct
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from scheduling import alarms, recalls
from sending.answers import Sent
from store.db import arrays
from store.db.pipeline import Call
from store.messages import Record, accept
from store.messages.accept import Parcel
from store.queues import SEND_MESSAGES, SKIP_STORED

# Place, log offset and queue offset of a message that SEND_MESSAGES stored.
PLACED = struct.Struct("!iqq")


@dataclass(slots=True, frozen=True)
class Level:
    """Where a message waits for its delay level: a queue of the schedule topic, for so long."""

    topic_id: int
    queue_id: int
    seconds: int


class Part(Protocol):
    """What one send adds to a batch: its messages, the queue that they are entered in now, their delay level."""

    @property
    def parcel(self) -> Parcel: ...

    @property
    def queue(self) -> tuple[int, int]: ...

    @property
    def level(self) -> Level | None: ...


def have_keys(records: Sequence[Record]) -> bool:
    """Whether one of the messages has a sharding key."""
    for record in records:  # noqa: SIM110  # almost always one: a generator takes three times as long
        if record.sharding_key is not None:
            return True
    return False


def calls(parts: Sequence[Part], segment_id: bytes) -> Iterable[Call]:
    """The statements that store and enter these messages, under the locks of their queues."""
    columns = {**accept.contents(records_of(parts)), **_columns_of_levels(parts), "segment_id": segment_id}
    repeatable = [(number, id_) for number, part in enumerate(parts, start=1) for id_ in part.parcel.repeatable]
    places = _places_of_queues(parts)
    if repeatable:
        yield _skip_stored(parts, places, repeatable)
    numbers = [number for number, part in enumerate(parts, start=1) for _ in part.parcel.records]
    of_queues = _columns_of_queues(parts, places)
    yield Call(SEND_MESSAGES, {**columns, **of_queues, "request": arrays.int4s(numbers if repeatable else ())})


def _places_of_queues(parts: Sequence[Part]) -> dict[tuple[int, int], int]:
    """The queues that the messages are entered in, each with its place among them, from 1 on."""
    places: dict[tuple[int, int], int] = {}
    for part in parts:
        places.setdefault(part.queue, len(places) + 1)
    return places


def _skip_stored(
    parts: Sequence[Part], places: dict[tuple[int, int], int], repeatable: Sequence[tuple[int, uuid.UUID]]
) -> Call:
    """Leaves out the requests of which a message is stored; `repeatable` are numbers of requests with ids of theirs."""
    return Call(
        SKIP_STORED,
        {
            "request_queue": arrays.int4s([places[part.queue] for part in parts]),
            "request_messages": arrays.int4s([len(part.parcel.records) for part in parts]),
            "repeatable": arrays.uuids([message_id.bytes for _, message_id in repeatable]),
            "repeatable_request": arrays.int4s([number for number, _ in repeatable]),
        },
    )


def _columns_of_queues(parts: Sequence[Part], places: dict[tuple[int, int], int]) -> dict[str, bytes]:
    """The queues, and of each message the place of its queue and its number among the messages of that queue."""
    queue: list[int] = []
    rank: list[int] = []
    ranked = [0] * (len(places) + 1)
    for part in parts:
        place, count = places[part.queue], len(part.parcel.records)
        before, ranked[place] = ranked[place], ranked[place] + count
        queue += (place,) * count
        rank += range(before + 1, before + count + 1)
    return {
        "entry_topic_id": arrays.int4s([topic_id for topic_id, _ in places]),
        "entry_queue_id": arrays.int4s([queue_id for _, queue_id in places]),
        "queue": arrays.int4s(queue),
        "rank": arrays.int4s(rank),
    }


def _columns_of_levels(parts: Sequence[Part]) -> dict[str, bytes]:
    """How long messages wait, and their own queues; empty arrays when none of them has a delay, as almost always."""
    waiting: Sequence[Part] = ()
    if [part.level for part in parts].count(None) < len(parts):
        waiting = [part for part in parts for _ in part.parcel.records]
    records = records_of(parts) if waiting else ()
    return {
        "topic_id": arrays.int4s([record.topic_id for record in records]),
        "queue_id": arrays.int4s([record.queue_id for record in records]),
        "delay_seconds": arrays.float8s([None if one.level is None else one.level.seconds for one in waiting]),
    }


def records_of(parts: Sequence[Part]) -> list[Record]:
    """The messages, in the order of their places in the batch."""
    return [record for part in parts for record in part.parcel.records]


def answer_delayed(sent: Sent, level: Level) -> None:
    """A message that waits in the queue of its level has no offset in its own yet."""
    assert sent.queue_offset is not None
    sent.deliver_at = sent.stored_at + timedelta(seconds=level.seconds)
    sent.recall_handle = recalls.handle(sent.message_id, None, level.queue_id, sent.queue_offset)
    sent.queue_offset = None
    alarms.set_now(level.seconds)
