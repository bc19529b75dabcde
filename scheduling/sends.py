"""Plain sends: store a message and publish it, in one write."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling import delays, recalls
from scheduling.publish import Publication, publish
from store import accept
from store.accept import Accepted
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db.connections import Row
from store.errors import Refusal
from store.log import Record
from store.messages import Message
from store.queues import tags_code_of


@dataclass(slots=True)
class Send:
    """One message to be sent, and on each attempt to write it what it became."""

    accepted: Accepted
    record: Record | None = None
    publication: Publication | None = None


async def send(message: Message, traceparent: str | None = None) -> dict[str, Any]:
    """Stores a message and makes it visible at once, or after its delay.

    Answers the fields of POST /v1/messages; a message whose id is stored already is not stored again, the answer is the
    first one with `duplicate`. Raises a Refusal when a rule is broken or the broker cannot write now.
    """
    accepted = await accept.accept(message, traceparent=traceparent)
    answer: dict[str, Any] = await writer.submit(
        SENDS, Send(accepted), key=accepted.message_id, size=len(accepted.body)
    )
    return answer


class Sends(Kind[Send]):
    """Sends are written in a batch: one append, one enqueue."""

    async def decide(self, batch: Batch, pending: list[Pending[Send]]) -> None:
        stored = await accept.stored_before(batch, [one.request.accepted for one in pending])
        hidden = [message_id for message_id, row in stored.items() if row.queue_offset is None]
        standings = await recalls.standings(batch, hidden)
        for one in pending:
            accepted = one.request.accepted
            if accepted.message_id in stored:
                row = stored[accepted.message_id]
                one.outcome = answer_repeat(accepted, row, standings.get(accepted.message_id))
                continue
            try:
                delays.judge(delays.of_message(accepted.message), batch.now)
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


def answer_sent(accepted: Accepted, publication: Publication, stored_at: datetime) -> dict[str, Any]:
    """The answer to a send that was stored now."""
    answer: dict[str, Any] = {
        "message_id": accepted.message_id,
        "topic": accepted.topic.name,
        "queue_id": publication.queue_id,
        "queue_offset": publication.queue_offset,
        "commit_log_offset": publication.log_offset,
        "send_status": "SEND_OK",
        "stored_at": stored_at,
    }
    if publication.deliver_at is not None:
        answer["deliver_at"] = publication.deliver_at
        answer["recall_handle"] = recalls.handle_of(publication)
    return answer


def answer_repeat(accepted: Accepted, stored: Row, standing: dict[str, Any] | None = None) -> dict[str, Any] | Refusal:
    """The answer to a send whose id is stored already: the first answer, or the refusal of another message.

    `standing` is how one that was not visible at the first look stands, by `recalls.standings`.
    """
    try:
        accept.judge_repeat(accepted, stored)
    except Refusal as refusal:
        return refusal
    answer = {
        "message_id": accepted.message_id,
        "topic": accepted.topic.name,
        "queue_id": stored.queue_id,
        "queue_offset": stored.queue_offset,
        "commit_log_offset": stored.log_offset,
        "send_status": "SEND_OK",
        "stored_at": stored.stored_at,
        "duplicate": True,
        **(standing or {}),
    }
    delay = delays.of_message(accepted.message)
    if "deliver_at" in answer and delay is not None and delay.level is not None:
        # A level's entry keeps its time in whole milliseconds, rounded up.
        answer["deliver_at"] = delays.due_at(delay, stored.stored_at)
    return answer
