"""Messages packed for the pipelined batch: the columns of its statements about sends, and what these answer."""

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
# The number that stands for a queue where a message is entered nowhere.
NOWHERE = 0


@dataclass(slots=True, frozen=True)
class Level:
    """Where a message waits for its delay level: a queue of the schedule topic, for so long."""

    topic_id: int
    queue_id: int
    seconds: int

    @property
    def queue(self) -> tuple[int, int]:
        return self.topic_id, self.queue_id


@dataclass(slots=True, frozen=True)
class Timer:
    """The row in which a message waits for its own time; it is entered in no queue before."""

    id: uuid.UUID
    delay: Delay

    @property
    def queue(self) -> None:
        return None

    @property
    def is_plain(self) -> bool:
        """Whether a pipelined batch takes it; a time is looked at there, by the database's clock."""
        return self.delay.at is not None or delays.are_possible(self.delay.seconds or 0)


class Part(Protocol):
    """What one send adds to a batch: its messages, the queue that they are entered in now, and where they wait."""

    @property
    def parcel(self) -> Parcel: ...

    @property
    def queue(self) -> tuple[int, int] | None: ...

    @property
    def wait(self) -> Level | Timer | None: ...


def have_keys(records: Sequence[Record]) -> bool:
    """Whether one of the messages has a sharding key."""
    for record in records:  # noqa: SIM110  # almost always one: a generator takes three times as long
        if record.sharding_key is not None:
            return True
    return False


def calls(parts: Sequence[Part], segment_id: bytes) -> Iterable[Call]:
    """The statements that store and enter these messages, under the locks of their queues."""
    are_delayed = [part.wait for part in parts].count(None) < len(parts)
    waiting = _columns_of_waits(parts) if are_delayed else _NOT_DELAYED
    columns = {**accept.contents(records_of(parts)), **waiting, "segment_id": segment_id}
    repeatable = [(number, id_) for number, part in enumerate(parts, start=1) for id_ in part.parcel.repeatable]
    queues = _number_queues(parts)
    if repeatable:
        yield _skip_stored(parts, queues, repeatable)
    numbers = [number for number, part in enumerate(parts, start=1) for _ in part.parcel.records]
    of_queues = _columns_of_queues(parts, queues)
    yield Call(SEND_MESSAGES, {**columns, **of_queues, "request": arrays.int4s(numbers if repeatable else ())})
    if are_delayed:
        yield from _insert_timers(parts, segment_id)


def _number_queues(parts: Sequence[Part]) -> dict[tuple[int, int], int]:
    """The queues that the messages are entered in, each with its number among them, from 1 on."""
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
    """Leaves out the requests of which a message is stored; `repeatable` are numbers of requests with ids of theirs."""
    return Call(
        SKIP_STORED,
        {
            "request_queue": arrays.int4s([_number_of(part, queues) for part in parts]),
            "request_messages": arrays.int4s([len(part.parcel.records) for part in parts]),
            "repeatable": arrays.uuids([message_id.bytes for _, message_id in repeatable]),
            "repeatable_request": arrays.int4s([number for number, _ in repeatable]),
        },
    )


def _columns_of_queues(parts: Sequence[Part], queues: dict[tuple[int, int], int]) -> dict[str, bytes]:
    """The queues, and of each message the number of its queue and its own among the messages of that queue."""
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


# Of a batch in which no message has a delay, as almost always.
_NOT_DELAYED: dict[str, bytes | None] = {
    "topic_id": NO_NUMBERS,
    "queue_id": NO_NUMBERS,
    "delay_seconds": SECONDS(()),
    "deliver_at": TIMES(()),
    "max_delay_seconds": None,
}


def _columns_of_waits(parts: Sequence[Part]) -> dict[str, bytes | None]:
    """How long messages wait at their level, or until when by a timer, and their own queues."""
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
    """The statement that adds the timers of these messages, if any of them waits by one."""
    each = [(part.wait, record) for part in parts for record in part.parcel.records]
    numbers = [number for number, (wait, _) in enumerate(each, start=1) if isinstance(wait, Timer)]
    if not numbers:
        return
    timers = [wait for wait, _ in each if isinstance(wait, Timer)]
    records = [record for wait, record in each if isinstance(wait, Timer)]
    # In whole microseconds, as Python rounds them: the answer counts with the same number.
    seconds = [None if one.delay.seconds is None else timedelta(seconds=one.delay.seconds) for one in timers]
    columns = {
        **accept.columns(records, ()),
        "segment_id": segment_id,
        "id": arrays.uuids([timer.id.bytes for timer in timers]),
        "number": arrays.int4s(numbers),
        "due_at": TIMES([timer.delay.at for timer in timers]),
        "delay_seconds": SECONDS([None if wait is None else wait.total_seconds() for wait in seconds]),
        # These the stepwise writer has.
        "log_segment": None,
        "log_offset": None,
        "reconsume_times": None,
    }
    yield Call(INSERT_TIMERS, columns)


def records_of(parts: Sequence[Part]) -> list[Record]:
    """The messages, in the order of their numbers in the batch."""
    return [record for part in parts for record in part.parcel.records]


def answer_delayed(sent: Sent, wait: Level | Timer) -> None:
    """A message that waits has no offset in its queue yet."""
    if isinstance(wait, Level):
        sent.deliver_at = sent.stored_at + timedelta(seconds=wait.seconds)
        sent.recall_handle = recalls.handle(sent.message_id, None, wait.queue_id, sent.queue_offset)
    else:
        # The sender's time may have any offset.
        sent.deliver_at = exact(delays.due_at(wait.delay, sent.stored_at).astimezone(UTC))
        sent.recall_handle = recalls.handle(sent.message_id, wait.id, None, None)
    sent.queue_offset = None
    alarms.set_now((sent.deliver_at - sent.stored_at).total_seconds())
