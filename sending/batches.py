"""Batches, as RocketMQ knows them: one topic, one queue, consecutive offsets, all or nothing. Its texts are kept."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from scheduling.publish import Publication, publish
from sending import sends
from sending.answers import Sent
from sending.pipelined import Detours, Sending
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.commit.pipelined import MAX_BATCH_BYTES
from store.errors import BatchIllegal, MessageIdReused, Refusal
from store.messages import Message, Record, accept
from store.messages.accept import Accepted, Parcel, StoredBefore
from store.messages.properties import tags_code_of
from store.naming import topics
from store.process import runtime

MAX_MESSAGES = 1000


class BatchedMessage(Message, kw_only=True, forbid_unknown_fields=True):
    """A message of a batch. The fields of a transaction are known here only to be refused by name."""

    producer_group: str | None = None
    transaction_id: uuid.UUID | None = None
    check_immunity_seconds: float | None = None
    check_url: str | None = None


class SentBatch(msgspec.Struct):
    """One result per message, in order."""

    results: list[Sent]


class SendBatch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Messages that are stored together in one queue of one topic."""

    topic: str = ""
    messages: list[BatchedMessage]


@dataclass(slots=True)
class Together:
    """A batch to be written, and on each attempt what its messages became."""

    accepted: list[Accepted]
    records: list[Record] = field(default_factory=list)
    publications: list[Publication] = field(default_factory=list)


async def send(request: SendBatch, traceparent: str | None = None, *, left_out: Sending | None = None) -> list[Sent]:
    """Stores the messages of a batch in one queue at consecutive offsets, or none of them.

    Answers one send result per message, in order. Raises BatchIllegal with RocketMQ's reason, or the refusal of the
    first message that breaks a rule; nothing is stored then. `left_out` is what a pipelined batch has left out of it:
    its messages keep their ids and their queue.
    """
    if left_out is None:
        _validate(request)
        parcel = await accept.accept_together(request.messages, _topic_of(request), traceparent)
        sending = _pipelined(parcel)
        if sending is not None and (sent := await writer.write(sending)) is not None:
            return sent
    else:
        parcel = left_out.parcel
    first = parcel.records[0]
    with runtime.part(Detours).of(first):
        together, size = Together(parcel.each(request.messages)), accept.size_of(parcel.records)
        results: list[Sent] = await writer.submit(BATCHES, together, key=first.message_id, size=size)
    return results


def ready(request: SendBatch, traceparent: str | None = None) -> Sending | None:
    """A batch for a pipelined batch, its topic known and its bodies not too large, as almost all are; else None.

    Raises what `send` raises when a rule is broken.
    """
    _validate(request)
    topic = topics.known_for_sending(_topic_of(request))
    return None if topic is None else _pipelined(accept.accept_for(topic, request.messages, traceparent))


def _topic_of(request: SendBatch) -> str:
    return request.topic or request.messages[0].topic


def _pipelined(parcel: Parcel) -> Sending | None:
    size = accept.size_of(parcel.records)
    if size >= MAX_BATCH_BYTES or runtime.part(Detours).precede(parcel.records):
        return None
    return Sending(parcel, size)


def _validate(request: SendBatch) -> None:
    if not request.messages:
        raise BatchIllegal("messages is empty: give at least one message.")
    if len(request.messages) > MAX_MESSAGES:
        raise BatchIllegal(f"messages has {len(request.messages)} messages, the limit is {MAX_MESSAGES}.")
    named = {message.topic or request.topic for message in request.messages}
    if request.topic:
        named.add(request.topic)
    for message in request.messages:
        _validate_message(message)
    if any(name.startswith(topics.RETRY_PREFIX) for name in named):
        raise BatchIllegal("Retry Group is not supported for batching")
    if len(named) > 1:
        raise BatchIllegal("The topic of the messages in one batch should be the same")


def _validate_message(message: BatchedMessage) -> None:
    if message.delay_level:
        raise BatchIllegal("TimeDelayLevel is not supported for batching")
    if message.delay_seconds is not None or message.deliver_at is not None:
        raise BatchIllegal("delay_seconds and deliver_at are not supported for batching: send it by itself.")
    if (
        message.producer_group is not None
        or message.transaction_id is not None
        or message.check_immunity_seconds is not None
        or message.check_url is not None
    ):
        raise BatchIllegal("Transactional messages are not supported for batching: use POST /v1/transactions.")


class Batches(Kind[Together]):
    """Each batch is appended and enqueued as a whole; several of them share the group commit's transaction."""

    async def decide(self, batch: Batch, pending: list[Pending[Together]]) -> None:
        stored = await batch.stored_before([one for each in pending for one in each.request.accepted])
        for one in pending:
            one.outcome = _repeated(one.request.accepted, stored)
            if one.outcome is None:
                one.request.records = [accepted.record() for accepted in one.request.accepted]
                batch.append(one.request.records)

    async def place(self, batch: Batch, pending: list[Pending[Together]]) -> None:
        for one in pending:
            one.request.publications = [_publication(batch, record) for record in one.request.records]
            for publication in one.request.publications:
                await publish(batch, publication)

    async def record(self, batch: Batch, pending: list[Pending[Together]]) -> None:
        for one in pending:
            pairs = zip(one.request.accepted, one.request.publications, strict=True)
            one.outcome = [sends.answer_sent(accepted, publication, batch.now) for accepted, publication in pairs]


BATCHES = Batches()


def _repeated(accepted: Sequence[Accepted], stored: dict[uuid.UUID, StoredBefore]) -> list[Sent] | Refusal | None:
    """The first answers to a batch that was stored before, or the refusal of one that was not stored as a whole."""
    known = [one for one in accepted if one.message_id in stored]
    if not known:
        return None
    if len(known) < len(accepted):
        return MessageIdReused(f"The message_id {known[0].message_id} was used outside of this batch: use a new id.")
    answers: list[Sent] = []
    for one in accepted:
        answer = sends.answer_repeat(one, stored[one.message_id])
        if isinstance(answer, Refusal):
            return answer
        answers.append(answer)
    return answers


def _publication(batch: Batch, record: Record) -> Publication:
    return Publication(
        message_id=record.message_id,
        topic_id=record.topic_id,
        queue_id=record.queue_id,
        log_segment=batch.segment_id,
        log_offset=record.log_offset,
        tags_code=tags_code_of(record.tags),
    )
