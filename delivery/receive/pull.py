"""Pull: reads a queue by offset and keeps no state for the reader; for replay, broadcast and streams."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

from delivery.receive import deliveries, discarded
from delivery.receive.deliveries import Entry
from store import messages, queues
from store.errors import OffsetOutOfRange, require_between
from store.messages import counted
from store.naming import topic_names, topics
from store.naming.topics import TopicFacts
from store.notices import notifier
from store.process import runtime
from store.process.answer_budget import Hold
from store.queues import EntryRow, QueueBounds
from store.reading import holders

MAX_MESSAGES = 1000
DEFAULT_MESSAGES = 32
# A blocked pull reads again after this time, because a wake-up may be lost.
READ_AGAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive entries of a queue, made during iteration, with the next offset and the queue's bounds."""

    entries: Iterator[Entry]
    bounds: dict[str, int]


async def pull(
    topic_name: str,
    queue_id: int,
    offset: int,
    max_messages: int,
    wait_seconds: float,
    hold: Hold,
    gone: asyncio.Future[object] | None = None,
    require: Callable[[], Awaitable[None]] | None = None,
    cell: str | None = None,
) -> Stretch:
    """The entries of a queue from an offset on, with the queue's bounds.

    If there is no entry, waits up to `wait_seconds` for the first one, or until the reader's connection is `gone` or
    the process stops. After each wait `require` raises a refusal if the key was revoked or restricted meanwhile.
    `cell`: see `holders.of_queues`. The bodies count in `hold`.

    Raises TopicNotExist, QueueIllegal, MessageIllegal, SystemBusy, or OffsetOutOfRange with both bounds.
    """
    deadline, reader = time.monotonic() + wait_seconds, object()
    while True:
        # Each round looks the topic up: during the wait the topic may be deleted, or created again under its name.
        topic = await topics.for_reading(topic_name)
        _validate(topic, queue_id, max_messages, wait_seconds)
        with runtime.in_cell(holders.of_queues(topic, cell)), notifier.listening((topic.id,), reader) as waiter:
            rows = await queues.read(topic.id, queue_id, offset, max_messages, hold)
            [bounds] = await queues.bounds([(topic.id, queue_id)])
            _require_held(topic.name, rows, bounds, offset)
            left = deadline - time.monotonic()
            if rows or left <= 0 or (gone is not None and gone.done()):
                break
            hold.set(0)
            await waiter.wait(min(left, READ_AGAIN_SECONDS), gone)
        if require is not None:
            await require()
    names = await topic_names.of_ids({row.topic_id for row in rows})
    producers = await discarded.producers(rows) if topic.name == topics.DISCARDED else {}
    entries = (_entry(row, names[row.topic_id], topic, producers) for row in rows)
    return Stretch(entries, _ends(rows, bounds, offset))


def _ends(rows: Sequence[EntryRow], bounds: QueueBounds, offset: int) -> dict[str, int]:
    following = rows[-1].queue_offset + 1 if rows else offset
    return {"next_offset": following, "min_offset": bounds.min_offset, "max_offset": bounds.max_offset}


def _require_held(topic: str, rows: Sequence[EntryRow], bounds: QueueBounds, offset: int) -> None:
    is_there = bool(rows) and rows[0].queue_offset == offset
    if not is_there and not bounds.min_offset <= offset <= bounds.max_offset:
        raise out_of_range(topic, bounds.queue_id, offset, bounds.min_offset, bounds.max_offset)


def _validate(topic: TopicFacts, queue_id: int, max_messages: int, wait_seconds: float) -> None:
    topics.require_queue(topic.name, queue_id, topic.queues)
    require_between("max", max_messages, 1, MAX_MESSAGES)
    require_between("wait_seconds", wait_seconds, 0, settings.MAX_WAIT_SECONDS)


def out_of_range(topic: str, queue_id: int, offset: int, min_offset: int, max_offset: int) -> OffsetOutOfRange:
    """The refusal of an offset that the queue does not hold, with both bounds."""
    return OffsetOutOfRange(
        f"Queue {queue_id} of {topic} has no offset {offset}: its offsets begin at {min_offset} and end "
        f"before {max_offset}.",
        min_offset=min_offset,
        max_offset=max_offset,
    )


def _entry(row: EntryRow, origin: str, topic: TopicFacts, producers: Mapping[int, str]) -> Entry:
    message = messages.stored(row, origin)
    count = counted.of(topic.name, row.reconsume_times)
    message.reconsume_times = count.reconsume_times
    if count.check_times is not None:
        discarded.add_properties(message, row, count.check_times, producers)
    elif topic.name.startswith(topics.DEAD_LETTER_PREFIX):
        deliveries.add_retry_properties(message, origin, count.reconsume_times)
    return Entry(message, row.entry_queue_id, row.queue_offset)
