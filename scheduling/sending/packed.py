"""Sends in a pipelined batch: the packed columns of the statements, and their packed answers."""

import struct
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Protocol

from django.conf import settings

from scheduling import alarms, delays, recalls
from scheduling.delays import Delay
from scheduling.publish import INSERT_TIMERS
from scheduling.sending.results import Sent
from store.db import arrays
from store.db.pipeline import Call
from store.messages import Record, accept
from store.messages.accept import Parcel
from store.messages.times import exact
from store.queues import SEND_MESSAGES, SKIP_STORED

# Number, log offset and queue offset of a message that SEND_MESSAGES stored.
OFFSETS = struct.Struct("!iqq")
TIMES = arrays.sparse(arrays.timestamps)
SECONDS = arrays.sparse(arrays.float8s)
NO_NUMBERS = arrays.int4s(())
# In place of a queue number: the message gets no entry now, because it is delayed.
NOWHERE = 0


@dataclass(slots=True, frozen=True)
class Level:
    """A wait at a delay level: the level's queue in the schedule topic, and the delay in seconds."""

    topic_id: int
    queue_id: int
    seconds: int

    @property
    def queue(self) -> tuple[int, int]:
        return self.topic_id, self.queue_id


@dataclass(slots=True, frozen=True)
class Timer:
    """A wait in a timer: the message gets its entry when the timer is released."""

    id: uuid.UUID
    delay: Delay

    @property
    def queue(self) -> None:
        return None

    @property
    def is_plain(self) -> bool:
        """Whether a pipelined batch may write messages with this wait. The batch itself validates a time, by the
        database's clock.
        """
        return self.delay.at is not None or delays.are_possible(self.delay.seconds or 0)


class Part(Protocol):
    """A send in a batch: its messages, the queue that gets their entries now, and where the messages wait.

    `forward` is the number of its forward in the batch, from 1 on; 0 for a send without a forward.
    """

    @property
    def parcel(self) -> Parcel: ...

    @property
    def queue(self) -> tuple[int, int] | None: ...

    @property
    def wait(self) -> Level | Timer | None: ...

    @property
    def forward(self) -> int: ...


def have_keys(records: Sequence[Record]) -> bool:
    """Whether one of the messages has a sharding key."""
    for record in records:  # noqa: SIM110  # almost always one record: a generator takes three times as long
        if record.sharding_key is not None:
            return True
    return False


def calls(parts: Sequence[Part], segment_id: bytes) -> Iterable[Call]:
    """The statements that store these messages and insert their entries, under the locks of their queues."""
    are_delayed = [part.wait for part in parts].count(None) < len(parts)
    waiting = _columns_of_waits(parts) if are_delayed else _NOT_DELAYED
    columns = {**accept.contents(records_of(parts)), **waiting, "segment_id": segment_id}
    # For a send that belongs to a forward, `ack_forwards` has already looked for stored message ids.
    repeatable = [(at, id_) for at, part in enumerate(parts, 1) for id_ in part.parcel.repeatable if not part.forward]
    queues, are_skipped = _number_queues(parts), bool(repeatable) or any(part.forward for part in parts)
    if are_skipped:
        yield _skip_stored(parts, queues, repeatable)
    numbers = [number for number, part in enumerate(parts, start=1) for _ in part.parcel.records]
    of_queues = _columns_of_queues(parts, queues)
    yield Call(SEND_MESSAGES, {**columns, **of_queues, "request": arrays.int4s(numbers if are_skipped else ())})
    if are_delayed:
        yield from _insert_timers(parts, segment_id)


def _number_queues(parts: Sequence[Part]) -> dict[tuple[int, int], int]:
    """Each queue that gets entries now, with a number from 1 on, by which the statements name it."""
    queues: dict[tuple[int, int], int] = {}
    for part in parts:
        if part.queue is not None:
            queues.setdefault(part.queue, len(queues) + 1)
    return queues


def _number_of(part: Part, queues: dict[tuple[int, int], int]) -> int:
    return NOWHERE if part.queue is None else queues[part.queue]


def _skip_stored(
    parts: Sequence[Part], queues: dict[tuple[int, int], int], repeatable: Sequence[tuple[int, uuid.UUID]]
) -> Call:
    """The statement that leaves out repeated requests; `repeatable`: request numbers with the ids that clients gave."""
    return Call(
        SKIP_STORED,
        {
            "request_queue": arrays.int4s([_number_of(part, queues) for part in parts]),
            "request_messages": arrays.int4s([len(part.parcel.records) for part in parts]),
            "request_forward": arrays.int4s([part.forward for part in parts]),
            "repeatable": arrays.uuids([message_id.bytes for _, message_id in repeatable]),
            "repeatable_request": arrays.int4s([number for number, _ in repeatable]),
        },
    )


def _columns_of_queues(parts: Sequence[Part], queues: dict[tuple[int, int], int]) -> dict[str, bytes]:
    """The columns of the queues, and for each message the number of its queue and its rank in this queue."""
    queue: list[int] = []
    rank: list[int] = []
    ranked = [0] * (len(queues) + 1)
    for part in parts:
        count = len(part.parcel.records)
        if part.queue is None:
            queue += (NOWHERE,) * count
            rank += (0,) * count
            continue
        number = queues[part.queue]
        before, ranked[number] = ranked[number], ranked[number] + count
        queue += (number,) * count
        rank += range(before + 1, before + count + 1)
    return {
        "entry_topic_id": arrays.int4s([topic_id for topic_id, _ in queues]),
        "entry_queue_id": arrays.int4s([queue_id for _, queue_id in queues]),
        "queue": arrays.int4s(queue),
        "rank": arrays.int4s(rank),
    }


# The columns of a batch without delayed messages, the usual case.
_NOT_DELAYED: dict[str, bytes | None] = {
    "topic_id": NO_NUMBERS,
    "queue_id": NO_NUMBERS,
    "delay_seconds": SECONDS(()),
    "deliver_at": TIMES(()),
    "max_delay_seconds": None,
}


def _columns_of_waits(parts: Sequence[Part]) -> dict[str, bytes | None]:
    """The columns of the waits (seconds at a level, or the time of a timer), and the messages' real queues."""
    records = records_of(parts)
    waits = [part.wait for part in parts for _ in part.parcel.records]
    return {
        "topic_id": arrays.int4s([record.topic_id for record in records]),
        "queue_id": arrays.int4s([record.queue_id for record in records]),
        "delay_seconds": SECONDS([wait.seconds if isinstance(wait, Level) else None for wait in waits]),
        "deliver_at": TIMES([wait.delay.at if isinstance(wait, Timer) else None for wait in waits]),
        "max_delay_seconds": arrays.float8(settings.MAX_TIMER_DELAY_SECONDS),
    }


def _insert_timers(parts: Sequence[Part], segment_id: bytes) -> Iterable[Call]:
    """The statement that inserts the timers of these messages, if any message waits in a timer."""
    each = [(part.wait, record) for part in parts for record in part.parcel.records]
    numbers = [number for number, (wait, _) in enumerate(each, start=1) if isinstance(wait, Timer)]
    if not numbers:
        return
    timers = [wait for wait, _ in each if isinstance(wait, Timer)]
    records = [record for wait, record in each if isinstance(wait, Timer)]
    # timedelta rounds to microseconds: the due time in the answer is computed from the same rounded value.
    seconds = [None if one.delay.seconds is None else timedelta(seconds=one.delay.seconds) for one in timers]
    columns = {
        **accept.columns(records, ()),
        "segment_id": segment_id,
        "id": arrays.uuids([timer.id.bytes for timer in timers]),
        "number": arrays.int4s(numbers),
        "due_at": TIMES([timer.delay.at for timer in timers]),
        "delay_seconds": SECONDS([None if wait is None else wait.total_seconds() for wait in seconds]),
        # These fields are null, because only the stepwise writer sets them.
        "log_segment": None,
        "log_offset": None,
        "reconsume_times": None,
    }
    yield Call(INSERT_TIMERS, columns)


def records_of(parts: Sequence[Part]) -> list[Record]:
    """The messages, in the order of their numbers in the batch."""
    return [record for part in parts for record in part.parcel.records]


def answer_delayed(sent: Sent, wait: Level | Timer) -> None:
    """Sets due time and recall handle in the answer for a waiting message, clears its queue offset, sets an alarm."""
    if isinstance(wait, Level):
        sent.deliver_at = sent.stored_at + timedelta(seconds=wait.seconds)
        sent.recall_handle = recalls.handle(sent.message_id, None, wait.queue_id, sent.queue_offset)
    else:
        # The producer's time may have any UTC offset.
        sent.deliver_at = exact(delays.due_at(wait.delay, sent.stored_at).astimezone(UTC))
        sent.recall_handle = recalls.handle(sent.message_id, wait.id, None, None)
    sent.queue_offset = None
    alarms.set_now((sent.deliver_at - sent.stored_at).total_seconds())
