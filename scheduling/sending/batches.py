"""Batches, as RocketMQ knows them: one topic, one queue, consecutive offsets, all or nothing. Its texts are kept."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from django.conf import settings

from scheduling.publish import Publication, publish
from scheduling.sending import sends
from scheduling.sending.answers import Sent
from store import runtime, topics
from store.commit import accept, writer
from store.commit.accept import Accepted
from store.commit.batch import Batch, Kind, Pending
from store.commit.pipelined import MAX_BATCH_BYTES
from store.errors import BatchIllegal, MessageIdReused, MessageTooLarge, Refusal
from store.messages import Message, Record
from store.queues import tags_code_of
from store.rows import StoredBefore

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


async def send(request: SendBatch, traceparent: str | None = None) -> list[Sent]:
    """Stores the messages of a batch in one queue at consecutive offsets, or none of them.

    Answers one send result per message, in order. Raises BatchIllegal with RocketMQ's reason, or the refusal of the
    first message that breaks a rule; nothing is stored then.
    """
    _validate(request)
    topic = request.topic or request.messages[0].topic
    for message in request.messages:
        message.topic = topic
    accepted = [await accept.accept(message, traceparent=traceparent) for message in request.messages]
    together = Together(_in_one_queue(accepted))
    size = accept.size_of(accepted)
    detours = runtime.part(sends.Detours)
    if size < MAX_BATCH_BYTES and not detours.precede(together.accepted):
        sent = await writer.write(sends.Sending(together.accepted))
        if sent is not None:
            return sent
    with detours.of(together.accepted[0]):
        results: list[Sent] = await writer.submit(BATCHES, together, key=accepted[0].message_id, size=size)
    return results


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
    of_transactions = (
        message.producer_group,
        message.transaction_id,
        message.check_immunity_seconds,
        message.check_url,
    )
    if any(given is not None for given in of_transactions):
        raise BatchIllegal("Transactional messages are not supported for batching: use POST /v1/transactions.")


def _in_one_queue(accepted: list[Accepted]) -> list[Accepted]:
    """All messages, on the one queue that any of them names."""
    size = sum(len(one.body) for one in accepted)
    if size > settings.MAX_MESSAGE_BYTES:
        raise MessageTooLarge(f"The bodies have {size} bytes together, the limit is {settings.MAX_MESSAGE_BYTES}.")
    if len({one.message_id for one in accepted}) < len(accepted):
        raise MessageIdReused("Two messages of the batch have the same message_id: give each its own.")
    named = {
        one.queue_id for one in accepted if one.message.queue_id is not None or one.message.sharding_key is not None
    }
    if len(named) > 1:
        raise BatchIllegal(f"The messages name the queues {sorted(named)}: all of one batch go to one queue.")
    queue_id = named.pop() if named else accepted[0].queue_id
    return [one.on_queue(queue_id) for one in accepted]


class Batches(Kind[Together]):
    """Each batch is appended and enqueued as a whole; several of them share the group commit's transaction."""

    async def decide(self, batch: Batch, pending: list[Pending[Together]]) -> None:
        stored = await accept.stored_before(batch, [one for each in pending for one in each.request.accepted])
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
