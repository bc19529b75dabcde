"""Plain sends: store a message and publish it, in one write."""

from dataclasses import dataclass
from datetime import datetime

from msgspec import UNSET

from scheduling import delays, recalls
from scheduling.publish import Publication, publish
from scheduling.rows import Standing
from sending.answers import Sent
from sending.pipelined import Detours, Level, Sending
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.commit.pipelined import MAX_BATCH_BYTES
from store.errors import Refusal
from store.messages import Message, Record, accept, is_large
from store.messages.accept import Accepted, Parcel, StoredBefore
from store.messages.properties import tags_code_of
from store.messages.times import exact
from store.naming import topics
from store.process import runtime


@dataclass(slots=True)
class Send:
    """One message to be sent, and on each attempt to write it what it became."""

    accepted: Accepted
    record: Record | None = None
    publication: Publication | None = None


async def send(message: Message, traceparent: str | None = None, *, left_out: Sending | None = None) -> Sent:
    """Stores a message and makes it visible at once, or after its delay.

    Answers the fields of POST /v1/messages; a message whose id is stored already is not stored again, the answer is the
    first one with `duplicate`. Raises a Refusal when a rule is broken or the broker cannot write now. `left_out` is
    what a pipelined batch has left out of it: it keeps its id and its queue.
    """
    sending = ready(message, traceparent) if left_out is None else left_out
    if sending is None:
        # A message that breaks a rule makes no topic.
        await delays.require_possible(message)
        accepted = await accept.accept(message, traceparent=traceparent)
        delay = delays.of_message(message)
        level = await _level_of(delay)
        if delay is None or delay.level is not None:
            sending = _pipelined(accepted, level)
    if sending is not None:
        if left_out is None and (sent := await writer.write(sending)) is not None:
            return sent[0]
        # Without an await before the submit: with a sharding key, later messages must follow this one.
        [accepted] = sending.parcel.each((message,))
    with runtime.part(Detours).of(accepted.content):
        size = accept.size_of((accepted.content,))
        answer: Sent = await writer.submit(SENDS, Send(accepted), key=accepted.message_id, size=size)
    return answer


def ready(message: Message, traceparent: str | None = None) -> Sending | None:
    """A message for a pipelined batch, as almost all are: not delayed, not large, its topic known. Else None.

    Raises a Refusal when a rule is broken.
    """
    if delays.of_message(message) is not None or is_large(message, MAX_BATCH_BYTES):
        return None
    accepted = accept.accept_known(message, traceparent)
    return None if accepted is None else _pipelined(accepted, None)


def _pipelined(accepted: Accepted, level: Level | None) -> Sending | None:
    parcel = Parcel.of(accepted)
    size = accept.size_of(parcel.records)
    if size >= MAX_BATCH_BYTES or runtime.part(Detours).precede(parcel.records):
        return None
    return Sending(parcel, size, level)


async def _level_of(delay: delays.Delay | None) -> Level | None:
    """None for what is visible at once."""
    if delay is None or delay.level is None or not (seconds := delays.seconds_of_level(delay.level)):
        return None
    level = delays.known_level(delay.level)
    schedule = await topics.own(topics.SCHEDULE, queues=level)
    return Level(schedule.id, delays.queue_of(level), seconds)


class Sends(Kind[Send]):
    """Sends are written in a batch: one append, one enqueue."""

    async def decide(self, batch: Batch, pending: list[Pending[Send]]) -> None:
        stored = await batch.stored_before([one.request.accepted for one in pending])
        hidden = [message_id for message_id, row in stored.items() if row.queue_offset is None]
        standings = await recalls.standings(batch, hidden)
        for one in pending:
            accepted = one.request.accepted
            if accepted.message_id in stored:
                row = stored[accepted.message_id]
                one.outcome = answer_repeat(accepted, row, standings.get(accepted.message_id))
                continue
            try:
                delays.validate(delays.of_message(accepted.message), batch.now)
            except Refusal as refusal:
                one.outcome = refusal
                continue
            one.request.record = accepted.record()
            batch.append((one.request.record,))

    async def place(self, batch: Batch, pending: list[Pending[Send]]) -> None:
        for one in pending:
            accepted, record = one.request.accepted, one.request.record
            assert record is not None
            one.request.publication = Publication(
                message_id=accepted.message_id,
                topic_id=accepted.topic.id,
                queue_id=accepted.queue_id,
                log_segment=batch.segment_id,
                log_offset=record.log_offset,
                tags_code=tags_code_of(accepted.message.tags),
                delay=delays.of_message(accepted.message),
            )
            await publish(batch, one.request.publication)

    async def record(self, batch: Batch, pending: list[Pending[Send]]) -> None:
        for one in pending:
            publication = one.request.publication
            assert publication is not None
            one.outcome = answer_sent(one.request.accepted, publication, batch.now)


SENDS = Sends()


def answer_sent(accepted: Accepted, publication: Publication, stored_at: datetime) -> Sent:
    """The answer to a send that was stored now."""
    answer = Sent(
        accepted.message_id,
        accepted.topic.name,
        publication.queue_id,
        publication.queue_offset,
        publication.log_offset,
        stored_at,
    )
    if publication.deliver_at is not None:
        answer.deliver_at = publication.deliver_at
        answer.recall_handle = recalls.handle_of(publication)
    return answer


def answer_repeat(accepted: Accepted, stored: StoredBefore, standing: Standing | None = None) -> Sent | Refusal:
    """The answer to a send whose id is stored already: the first answer, or the refusal of another message.

    `standing` is how one that was not visible at the first look stands, by `recalls.standings`.
    """
    try:
        accept.validate_repeat(accepted, stored)
    except Refusal as refusal:
        return refusal
    answer = Sent(
        accepted.message_id,
        accepted.topic.name,
        stored.queue_id,
        stored.queue_offset,
        stored.log_offset,
        stored.stored_at,
        duplicate=True,
    )
    delay = delays.of_message(accepted.message)
    # One that was not delayed was visible from the first, and never recalled: retention has dropped its entry.
    if standing is not None and (delay is not None or standing.visible):
        recalls.stand(answer, standing)
    if answer.deliver_at is not UNSET and delay is not None and delay.level is not None:
        # A level's entry keeps its time in whole milliseconds, rounded up.
        answer.deliver_at = exact(delays.due_at(delay, stored.stored_at))
    return answer
