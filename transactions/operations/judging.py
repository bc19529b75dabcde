"""The results of ends: the answer to an end that decided nothing, and the rows that an end with a decision writes."""

import uuid
from collections.abc import Sequence
from typing import Protocol

import msgspec

from scheduling import recalls
from scheduling.delays import Delay
from scheduling.publish import Publication
from store.commit.batch import Batch, Overtaken
from store.db.arrays import literal
from store.db.statements import Statement
from store.errors import Refusal
from store.messages.texts import legible
from transactions import State
from transactions.errors import CommitLogOffsetWrong, ProducerGroupWrong, TransactionEnded
from transactions.reads import states
from transactions.reads.states import FIND_TRANSACTIONS
from transactions.results import Ended, EndedMessage
from transactions.rows import DeletedHalf, DiscardedHalf, ResumedHalf, TransactionRow

INSERT_OPERATIONS = Statement(__file__, "insert_operations")

STATE_AFTER: dict[str, State] = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}
MAX_REMARK = 1000
ON_THE_WAY = "If its half message is still on the way, repeat the end after its answer."


class Decision(Protocol):
    """The fields of an end that the rules for its answer need."""

    transaction_id: uuid.UUID
    decision: str
    decided_by: str
    group_id: int | None
    log_offset: int | None
    discarded: bool | None
    attempt: dict[str, object] | None
    remark: str | None
    result: Ended | None
    refusal: Refusal | None


def kept(remark: str | None) -> str | None:
    """A remark as it is stored: legible, and at most MAX_REMARK characters long."""
    return None if remark is None else legible(remark)[:MAX_REMARK]


async def answer(batch: Batch, left: Sequence[Decision]) -> None:
    """Sets the results and refusals of ends that decided nothing, after a new statement has read the decisions.

    Raises Overtaken for a transaction that was begun, discarded or resumed after the statement that looked for it.
    """
    if not left:
        return
    rows = await batch.read(FIND_TRANSACTIONS, {"transaction_ids": [one.transaction_id for one in left]})
    known = {row.transaction_id: row for row in rows}
    for one in left:
        transaction = known.get(one.transaction_id)
        outcome = _answer_to(one, transaction)
        if isinstance(outcome, Refusal):
            one.refusal = outcome
            continue
        one.result = outcome
        if transaction is not None and one.decision == "UNKNOWN":
            batch.insert(INSERT_OPERATIONS, of_end(one, transaction))
    await _add_standings(batch, [one.result for one in left if one.result is not None])


def _answer_to(end: Decision, transaction: TransactionRow | None) -> Ended | Refusal:
    """The answer to an end that decided nothing. The order of the rules is RocketMQ's."""
    if transaction is None:
        return states.not_found(end.transaction_id, ON_THE_WAY)
    if end.group_id is not None and transaction.producer_group_id != end.group_id:
        return ProducerGroupWrong(
            f"The producer group wrong: transaction {end.transaction_id} belongs to another group; name that one."
        )
    if end.log_offset is not None and end.log_offset not in transaction.log_offsets:
        return CommitLogOffsetWrong(
            f"The commit log offset wrong: transaction {end.transaction_id} is at {transaction.log_offsets[0]}."
        )
    return _answer_state(end, transaction)


def _answer_state(end: Decision, transaction: TransactionRow) -> Ended | Refusal:
    if transaction.state == "DISCARDED" and end.discarded is False:
        return states.discarded(transaction)
    if transaction.state == "PREPARED" and end.discarded:
        return states.not_discarded(end.transaction_id)
    if transaction.state in ("PREPARED", "DISCARDED") and end.decision != "UNKNOWN":
        raise Overtaken
    if end.decision == "UNKNOWN" or transaction.state == STATE_AFTER[end.decision]:
        return standing(transaction.state, transaction, transaction.queue_offsets)
    return TransactionEnded(
        f"Transaction {end.transaction_id} is already {transaction.state}, decided by "
        f"{transaction.decided_by}: this {end.decision} comes too late."
    )


def publications(half: DeletedHalf) -> list[Publication]:
    """The publications that make the messages of a committed transaction visible."""
    delays = half.delays or [None] * len(half.message_ids)
    return [
        Publication(
            message_id=half.message_ids[number],
            topic_id=half.topic_ids[number],
            queue_id=half.queue_ids[number],
            log_segment=half.log_segment,
            log_offset=half.log_offsets[number],
            tags_code=half.tags_codes[number],
            delay=msgspec.convert(delays[number], Delay) if delays[number] else None,
        )
        for number in range(len(half.message_ids))
    ]


def operation(
    transaction: TransactionRow | DeletedHalf | DiscardedHalf | ResumedHalf,
    decision: str,
    decided_by: str,
    remark: str | None,
    *,
    counts: bool = False,
    queue_offsets: list[int | None] | None = None,
) -> dict[str, object]:
    """The row of an operation, as parameters of INSERT_OPERATIONS. `counts`: it was decided by a check that counts."""
    return {
        "transaction_id": transaction.transaction_id,
        "producer_group_id": transaction.producer_group_id,
        "decision": decision,
        "decided_by": decided_by,
        "check_times": transaction.check_times + counts,
        "stored_at": transaction.stored_at,
        "log_segment": transaction.log_segment,
        "log_offsets": literal(transaction.log_offsets),
        "message_ids": literal(transaction.message_ids),
        "topic_ids": literal(transaction.topic_ids),
        "queue_ids": literal(transaction.queue_ids),
        "queue_offsets": None if queue_offsets is None else literal(queue_offsets),
        "remark": remark,
    }


def of_end(
    end: Decision, transaction: TransactionRow | DeletedHalf, queue_offsets: list[int | None] | None = None
) -> dict[str, object]:
    """The row of `operation` for an end."""
    counts = end.attempt is not None
    return operation(transaction, end.decision, end.decided_by, end.remark, counts=counts, queue_offsets=queue_offsets)


async def _add_standings(batch: Batch, answers: list[Ended]) -> None:
    """Adds the current state of delayed messages to the answers to repeated ends."""
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


def standing(state: State, transaction: TransactionRow | DeletedHalf, queue_offsets: list[int | None] | None) -> Ended:
    """The state of a transaction, as the answer to an end."""
    offsets = queue_offsets or [None] * len(transaction.message_ids)
    messages = zip(transaction.message_ids, transaction.queue_ids, offsets, strict=True)
    return Ended(transaction.transaction_id, state, [EndedMessage(*message) for message in messages])
