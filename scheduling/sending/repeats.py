"""Stepwise sends: a repeated send gets its first answer, a new message is published."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import UNSET

from scheduling import delays, recalls
from scheduling.publish import Publication
from scheduling.rows import Standing
from scheduling.sending.results import Sent
from store.errors import MessageIdReused
from store.messages import Record, accept
from store.messages.accept import Accepted
from store.messages.properties import tags_code_of
from store.messages.times import exact
from store.rows import StoredBefore


def answer_again(
    accepted: Sequence[Accepted], stored: Mapping[uuid.UUID, StoredBefore], standings: Mapping[uuid.UUID, Standing]
) -> list[Sent] | None:
    """The first answers to messages that were stored before; None when all messages are new.

    Raises MessageIdReused when an id belongs to another message, or the messages were not stored as one batch.
    """
    known = [one for one in accepted if one.message_id in stored]
    if not known:
        return None
    if len(known) < len(accepted):
        raise MessageIdReused(
            f"The message_id {known[0].message_id} is already used by a message outside of this batch: use a new id."
        )
    return [answer_repeat(one, stored[one.message_id], standings.get(one.message_id)) for one in accepted]


def publications(accepted: Sequence[Accepted], records: Sequence[Record], segment_id: int) -> list[Publication]:
    """The publications of stored messages, whose log offsets are known now."""
    return [
        Publication(
            message_id=one.message_id,
            topic_id=one.topic.id,
            queue_id=one.queue_id,
            log_segment=segment_id,
            log_offset=record.log_offset,
            tags_code=tags_code_of(one.message.tags),
            delay=delays.of_message(one.message),
        )
        for one, record in zip(accepted, records, strict=True)
    ]


def answer_sent(accepted: Accepted, publication: Publication, stored_at: datetime) -> Sent:
    """The answer to a send whose message was stored now."""
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


def answer_repeat(accepted: Accepted, stored: StoredBefore, standing: Standing | None = None) -> Sent:
    """The first answer to a send whose id is stored already. Raises MessageIdReused for another message.

    `standing`, from `recalls.standings`, is given for a message without an entry in its queue.
    """
    accept.validate_repeat(accepted, stored)
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
    # A message without a delay and without an entry was not recalled: it was visible before retention dropped its
    # entry.
    if standing is not None and (delay is not None or standing.visible):
        recalls.stand(answer, standing)
    if answer.deliver_at is not UNSET and delay is not None and delay.level is not None:
        # A level's entry has its due time rounded up to milliseconds, so the exact time is computed again.
        answer.deliver_at = exact(delays.due_at(delay, stored.stored_at))
    return answer
