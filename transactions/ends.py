"""Ends: the one decision that each transaction gets, whether a producer, a check or an operator gives it."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import msgspec

from scheduling import recalls
from scheduling.delays import Delay
from scheduling.publish import Publication, publish
from store.commit import writer
from store.commit.batch import Batch, Kind, Note, Pending
from store.db.arrays import literal
from store.db.statements import Statement
from store.errors import Refusal
from store.messages.texts import legible
from transactions import groups
from transactions.answers import Ended, EndedMessage
from transactions.errors import (
    CommitLogOffsetWrong,
    ProducerGroupWrong,
    TransactionDiscarded,
    TransactionEnded,
    TransactionNotFound,
)
from transactions.rows import DiscardedHalf, ResumedHalf, State, TransactionRow
from transactions.writing.begins import FIND_TRANSACTIONS
from transactions.writing.pipelined import Ending


class EndedHalf(NamedTuple):
    """A half message that was deleted: that delete is the decision. `delays` is null when no message is delayed."""

    transaction_id: UUID
    producer_group_id: int
    stored_at: datetime
    check_times: int
    log_segment: int
    log_offsets: list[int]
    message_ids: list[UUID]
    topic_ids: list[int]
    queue_ids: list[int]
    tags_codes: list[int]
    delays: Any | None
    was_discarded: bool


END_HALVES = Statement(__file__, "end_halves", EndedHalf)
INSERT_CHECK_ATTEMPTS = Statement(__file__, "insert_check_attempts")
INSERT_OPERATIONS = Statement(__file__, "insert_operations")

STATE_AFTER: dict[str, State] = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}
MAX_REMARK = 1000
# No group has this id: an end that names a group that does not exist finds no half message of it.
UNKNOWN_GROUP = -1
ON_THE_WAY = "If its half message is still on the way, repeat the end after its answer."


class EndTransaction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The call that ends a transaction. UNKNOWN says that the producer cannot tell yet."""

    producer_group: str
    state: Literal["COMMIT", "ROLLBACK", "UNKNOWN"]
    from_transaction_check: bool = False
    commit_log_offset: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    remark: str | None = None


@dataclass(slots=True)
class End:
    """One decision to be written, and on each attempt what it ended.

    `decided_by` is producer, check, operator or limit. `group_id` is None where the decision is the broker's own.
    """

    transaction_id: uuid.UUID
    decision: str
    decided_by: str
    group_id: int | None
    log_offset: int | None = None
    remark: str | None = None
    # Whether it decides discarded transactions (True), pending ones, or either (None).
    discarded: bool | None = False
    # The asked check that gave this decision, for INSERT_CHECK_ATTEMPTS.
    attempt: dict[str, object] | None = None
    half: EndedHalf | None = None
    publications: list[Publication] = field(default_factory=list)


async def end(transaction_id: uuid.UUID, request: EndTransaction, *, left_out: bool = False) -> Ended:
    """Ends a transaction for its producer: the first decision wins.

    Answers the fields of POST /v1/transactions/{id}/end, the same again for the same decision. Raises, in this order,
    TransactionNotFound, ProducerGroupWrong, CommitLogOffsetWrong, TransactionDiscarded or TransactionEnded. With
    `left_out` a pipelined batch has left it out.
    """
    group_id = await _group_id(request.producer_group)
    try:
        return await decide(_of_producer(transaction_id, request, group_id), left_out=left_out)
    except ProducerGroupWrong:
        # This process may remember a group that was deleted since and made again.
        groups.forget(request.producer_group)
        if group_id == (now := await _group_id(request.producer_group)):
            raise
    return await decide(_of_producer(transaction_id, request, now))


def ready(transaction_id: uuid.UUID, request: EndTransaction) -> Ending | None:
    """A decision for a pipelined batch, in a group that this process knows; else None."""
    group = groups.known(request.producer_group)
    return None if group is None else _pipelined(_of_producer(transaction_id, request, group.id))


def answer_to(ending: Ending, ended: list[EndedMessage]) -> Ended:
    """The answer to an end that a pipelined batch has written."""
    return Ended(ending.transaction_id, STATE_AFTER[ending.decision], ended)


async def _group_id(name: str) -> int:
    group = await groups.find(name)
    return UNKNOWN_GROUP if group is None else group.id


def _of_producer(transaction_id: uuid.UUID, request: EndTransaction, group_id: int) -> End:
    return End(
        transaction_id=transaction_id,
        decision=request.state,
        decided_by="check" if request.from_transaction_check else "producer",
        group_id=group_id,
        log_offset=request.commit_log_offset,
        remark=clip(request.remark),
    )


async def decide(end: End, note: Note | None = None, *, left_out: bool = False) -> Ended:
    """Writes one decision by group commit. Ends go before sends, so that under load the backlog drains."""
    if not left_out and (ending := _pipelined(end)) is not None:
        ended = await writer.write(ending)
        if ended is not None:
            return answer_to(ending, ended)
    answer: Ended = await writer.submit(ENDS, end, key=end.transaction_id, urgent=True, note=note)
    return answer


def _pipelined(end: End) -> Ending | None:
    if end.decision not in STATE_AFTER or end.discarded is not False or end.attempt is not None:
        return None
    return Ending(end.transaction_id, end.decision, end.decided_by, end.group_id, end.log_offset, end.remark)


def clip(remark: str | None) -> str | None:
    """A remark as it is kept: legible, and not too long."""
    return None if remark is None else legible(remark)[:MAX_REMARK]


class Ends(Kind[End]):
    """Ends are written in a batch: one delete decides them all, then their messages are published together."""

    async def decide(self, batch: Batch, pending: list[Pending[End]]) -> None:
        deciding = [one.request for one in pending if one.request.decision in STATE_AFTER]
        halves = await self._delete(batch, deciding) if deciding else {}
        for one in pending:
            half = one.request.half = halves.get(one.request.transaction_id)
            one.before = half and {"state": "DISCARDED" if half.was_discarded else "PREPARED"}
            if one.request.attempt is not None:
                batch.insert(INSERT_CHECK_ATTEMPTS, one.request.attempt)
        left = [one for one in pending if one.request.half is None]
        if left:
            await self._answer_left(batch, left)

    async def _delete(self, batch: Batch, ends: list[End]) -> dict[uuid.UUID, EndedHalf]:
        rows = await batch.read(
            END_HALVES,
            {
                "transaction_id": [end.transaction_id for end in ends],
                "group_id": [end.group_id for end in ends],
                "log_offset": [end.log_offset for end in ends],
                "discarded": [end.discarded for end in ends],
            },
        )
        return {row.transaction_id: row for row in rows}

    async def _answer_left(self, batch: Batch, left: list[Pending[End]]) -> None:
        """Answers the ends that ended nothing: repeats, UNKNOWN, or wrong ones. A new statement sees the decision."""
        rows = await batch.read(FIND_TRANSACTIONS, {"transaction_ids": [one.request.transaction_id for one in left]})
        known = {row.transaction_id: row for row in rows}
        for one in left:
            transaction = known.get(one.request.transaction_id)
            one.outcome = _answer_to(one.request, transaction)
            if transaction is not None and one.request.decision == "UNKNOWN" and isinstance(one.outcome, Ended):
                batch.insert(INSERT_OPERATIONS, operation(one.request, transaction, None))
        await _add_standings(batch, [one.outcome for one in left if isinstance(one.outcome, Ended)])

    async def place(self, batch: Batch, pending: list[Pending[End]]) -> None:
        for one in pending:
            one.request.publications = _publications(one.request)
            for publication in one.request.publications:
                await publish(batch, publication)

    async def record(self, batch: Batch, pending: list[Pending[End]]) -> None:
        for one in pending:
            end, half = one.request, one.request.half
            assert half is not None
            offsets = [publication.queue_offset for publication in end.publications] or None
            batch.insert(INSERT_OPERATIONS, operation(end, half, offsets))
            one.outcome = _answer(STATE_AFTER[end.decision], half, offsets)
            for message, publication in zip(one.outcome.messages, end.publications, strict=False):
                if publication.deliver_at is not None:
                    message.deliver_at = publication.deliver_at
                    message.recall_handle = recalls.handle_of(publication)


ENDS = Ends()


def _answer_to(end: End, transaction: TransactionRow | None) -> Ended | Refusal:
    """What an end that ended nothing is answered. The order of the rules is RocketMQ's."""
    if transaction is None:
        return not_found(end.transaction_id, ON_THE_WAY)
    if end.group_id is not None and transaction.producer_group_id != end.group_id:
        return ProducerGroupWrong(
            f"The producer group wrong: transaction {end.transaction_id} belongs to another group; name that one."
        )
    if end.log_offset is not None and end.log_offset not in transaction.log_offsets:
        return CommitLogOffsetWrong(
            f"The commit log offset wrong: transaction {end.transaction_id} is at {transaction.log_offsets[0]}."
        )
    return _answer_state(end, transaction)


def _answer_state(end: End, transaction: TransactionRow) -> Ended | Refusal:
    if transaction.state == "DISCARDED" and not end.discarded:
        return _discarded(transaction)
    if transaction.state == "PREPARED" and end.discarded:
        return not_discarded(end.transaction_id)
    if transaction.state == "PREPARED" and end.decision != "UNKNOWN":
        # It was begun after this end had looked for it.
        return not_found(end.transaction_id, ON_THE_WAY)
    if end.decision == "UNKNOWN" or transaction.state == STATE_AFTER[end.decision]:
        return _answer(transaction.state, transaction, transaction.queue_offsets)
    return TransactionEnded(
        f"Transaction {end.transaction_id} is {transaction.state} already, by {transaction.decided_by}: "
        f"{end.decision} comes too late."
    )


def not_pending(transaction_id: uuid.UUID, transaction: TransactionRow | None) -> Refusal:
    """The refusal of a check of a transaction that was just found to be not pending."""
    if transaction is None:
        return not_found(transaction_id)
    if transaction.state == "DISCARDED":
        return _discarded(transaction)
    return TransactionEnded(f"Transaction {transaction_id} is {transaction.state} already: there is nothing to ask.")


def not_found(transaction_id: uuid.UUID, advice: str = "") -> TransactionNotFound:
    """The refusal of an id that no transaction has."""
    sentence = f"There is no transaction {transaction_id}: it was never stored, or its segment is gone."
    return TransactionNotFound(f"{sentence} {advice}".strip())


def _discarded(transaction: TransactionRow) -> TransactionDiscarded:
    return TransactionDiscarded(
        f"Transaction {transaction.transaction_id} was discarded after {transaction.check_times} checks: "
        "an operator can resume or resolve it at /v1/discarded."
    )


def not_discarded(transaction_id: uuid.UUID) -> TransactionNotFound:
    """The refusal of an operator's decision about a transaction that still is its producer's."""
    return TransactionNotFound(
        f"There is no discarded transaction {transaction_id}: GET /v1/transactions/{transaction_id} shows its state."
    )


def _publications(end: End) -> list[Publication]:
    half = end.half
    if half is None or end.decision != "COMMIT":
        return []
    delays = half.delays or [None] * len(half.message_ids)
    return [
        Publication(
            message_id=half.message_ids[place],
            topic_id=half.topic_ids[place],
            queue_id=half.queue_ids[place],
            log_segment=half.log_segment,
            log_offset=half.log_offsets[place],
            tags_code=half.tags_codes[place],
            delay=msgspec.convert(delays[place], Delay) if delays[place] else None,
        )
        for place in range(len(half.message_ids))
    ]


def operation(
    end: End,
    transaction: TransactionRow | EndedHalf | DiscardedHalf | ResumedHalf,
    queue_offsets: list[int | None] | None,
) -> dict[str, object]:
    """The row of an operation, for INSERT_OPERATIONS."""
    return {
        "transaction_id": end.transaction_id,
        "producer_group_id": transaction.producer_group_id,
        "decision": end.decision,
        "decided_by": end.decided_by,
        "check_times": transaction.check_times + (end.attempt is not None),
        "stored_at": transaction.stored_at,
        "log_segment": transaction.log_segment,
        "log_offsets": literal(transaction.log_offsets),
        "message_ids": literal(transaction.message_ids),
        "topic_ids": literal(transaction.topic_ids),
        "queue_ids": literal(transaction.queue_ids),
        "queue_offsets": None if queue_offsets is None else literal(queue_offsets),
        "remark": end.remark,
    }


async def _add_standings(batch: Batch, answers: list[Ended]) -> None:
    """Adds to repeated answers how the messages that the commit delayed stand now."""
    delayed = [
        message
        for answer in answers
        if answer.state == "COMMITTED"
        for message in answer.messages
        if message.queue_offset is None
    ]
    standings = await recalls.standings(batch, [message.message_id for message in delayed])
    for message in delayed:
        if message.message_id in standings:
            recalls.stand(message, standings[message.message_id])


def _answer(state: State, transaction: TransactionRow | EndedHalf, queue_offsets: list[int | None] | None) -> Ended:
    offsets = queue_offsets or [None] * len(transaction.message_ids)
    messages = zip(transaction.message_ids, transaction.queue_ids, offsets, strict=True)
    return Ended(transaction.transaction_id, state, [EndedMessage(*message) for message in messages])
