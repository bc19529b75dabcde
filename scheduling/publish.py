"""Publishes messages: the only function that makes a send, a commit, a retry or a dead letter visible."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from scheduling import alarms, delays
from scheduling.delays import Delay
from store.commit import reappend
from store.commit.batch import Batch
from store.db.statements import Statement
from store.messages.ids import new_id
from store.messages.times import exact
from store.naming import topics
from store.queues import Entry
from store.segments.log import LogPosition

INSERT_TIMERS = Statement(__file__, "insert_timers")


@dataclass(slots=True)
class Publication:
    """A stored message to be published; `due_at` is the time of the timer that releases it.

    `publish` sets the fields from `deliver_at` on.
    """

    message_id: uuid.UUID | None
    topic_id: int
    queue_id: int
    log_segment: int
    log_offset: int
    tags_code: int
    delay: Delay | None = None
    reconsume_times: int = 0
    due_at: datetime | None = None
    deliver_at: datetime | None = None
    timer_id: uuid.UUID | None = None
    entry: Entry | None = None

    @property
    def position(self) -> LogPosition:
        """The log position of the message before `publish`, which may append the message again in another segment."""
        return self.log_segment, self.log_offset

    @property
    def queue_offset(self) -> int | None:
        """The queue offset of its entry, known in the batch's step `record`; None while the message is delayed."""
        return self.entry.queue_offset if self.entry is not None and self.deliver_at is None else None


async def publish(batch: Batch, publication: Publication) -> None:
    """Publishes one message like `publish_all`."""
    await publish_all(batch, (publication,))


async def publish_all(batch: Batch, publications: Sequence[Publication]) -> None:
    """Makes stored messages visible now, at their delay level or at their time, counted from the batch's time.

    Bodies in a segment that is older than the segment before the open one are appended again, by one statement for all.
    """
    positions = await reappend.near(batch, {publication.position for publication in publications})
    for publication in publications:
        await _publish(batch, publication, positions[publication.position])


async def _publish(batch: Batch, publication: Publication, position: LogPosition) -> None:
    due = delays.due_at(publication.delay, batch.now)
    if due <= batch.now:
        publication.entry = _visible_now(publication, position)
        batch.enqueue(publication.entry)
        return
    # The producer's time may have any UTC offset.
    publication.deliver_at = due = exact(due.astimezone(UTC))
    alarms.set_after(batch, (due - batch.now).total_seconds())
    if publication.delay is not None and publication.delay.level is not None:
        publication.entry = await _at_level(publication, position, delays.known_level(publication.delay.level), due)
        batch.enqueue(publication.entry)
    else:
        publication.timer_id = new_id()
        batch.insert(INSERT_TIMERS, _timer(publication, position, due))


def _visible_now(publication: Publication, position: LogPosition) -> Entry:
    return Entry(
        topic_id=publication.topic_id,
        queue_id=publication.queue_id,
        log_segment=position[0],
        log_offset=position[1],
        tags_code=publication.tags_code,
        reconsume_times=publication.reconsume_times,
        due_at=publication.due_at,
    )


async def _at_level(publication: Publication, position: LogPosition, level: int, due: datetime) -> Entry:
    """The entry in the level's queue, which keeps the real topic, queue and tags code for the release."""
    schedule = await topics.own(topics.SCHEDULE, queues=level)
    return Entry(
        topic_id=schedule.id,
        queue_id=delays.queue_of(level),
        log_segment=position[0],
        log_offset=position[1],
        tags_code=delays.milliseconds_of(due),
        reconsume_times=publication.reconsume_times,
        real_topic_id=publication.topic_id,
        real_queue_id=publication.queue_id,
        real_tags_code=publication.tags_code,
    )


def _timer(publication: Publication, position: LogPosition, due: datetime) -> dict[str, object]:
    return {
        "id": publication.timer_id,
        "number": None,
        "due_at": due,
        "delay_seconds": None,
        "message_id": publication.message_id,
        "log_segment": position[0],
        "log_offset": position[1],
        "topic_id": publication.topic_id,
        "queue_id": publication.queue_id,
        "tags_code": publication.tags_code,
        "reconsume_times": publication.reconsume_times,
    }
