"""Discards: after their last check, undecided half messages wait until an operator resumes or decides them."""

import asyncio
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Self
from uuid import UUID

from django.conf import settings

from scheduling.publish import Publication, publish
from store.commit import writer
from store.commit.batch import Batch, Overtaken
from store.commit.operation import Note, Operation
from store.db import connections
from store.db.statements import Statement
from store.errors import Refusal
from store.messages.texts import counted
from store.naming import topics
from store.segments import retention
from transactions import results, schedule
from transactions.errors import TransactionDiscarded, TransactionEnded, TransactionNotFound
from transactions.operations.end import End
from transactions.operations.judging import INSERT_OPERATIONS, kept, operation
from transactions.operations.located import OfTransaction
from transactions.reads import history, states
from transactions.reads.states import FIND_TRANSACTIONS
from transactions.results import Awaited, Ended
from transactions.rows import DiscardedHalf, ResumedHalf

DISCARD_HALVES = Statement(__file__, "discard_halves", DiscardedHalf)
FIND_EXHAUSTED = Statement(__file__, "find_exhausted", one=UUID)
FIND_LEFTOVERS = Statement(__file__, "find_leftovers", one=UUID)
FIND_OUTDATED = Statement(__file__, "find_outdated", one=UUID)
RESUME_HALVES = Statement(__file__, "resume_halves", ResumedHalf)

# The most transactions of one run; the next run continues.
MAX_DISCARDED_AT_ONCE = 1000
MAX_ROLLED_BACK_AT_ONCE = 500
# The remark of the operation that rolls back a leftover.
REMARK = "discarded, and not decided before its segment was dropped"


async def run(late_seconds: float = 0) -> int:
    """Discards half messages that have had TRANSACTION_CHECK_MAX checks. Returns their number."""
    parameters = {"late_seconds": late_seconds, "max_halves": MAX_DISCARDED_AT_ONCE}
    return await _discard(
        await connections.read(FIND_EXHAUSTED, parameters),
        f"no decision after {counted(schedule.most_checks(), 'check')}",
    )


async def run_outdated() -> int:
    """Discards half messages that are older than the retention. Returns their number."""
    parameters = {"reserved_hours": settings.RESERVED_HOURS, "max_halves": MAX_DISCARDED_AT_ONCE}
    transaction_ids = await connections.read(FIND_OUTDATED, parameters)
    return await _discard(transaction_ids, f"no decision within the retention of {settings.RESERVED_HOURS} hours")


async def _discard(transaction_ids: Sequence[uuid.UUID], reason: str) -> int:
    if not transaction_ids:
        return 0
    return await writer.run(Discard(list(transaction_ids), reason))


class Discard(Operation[int]):
    """The half messages get no more checks, and get entries in the topic of discarded messages. The result is their
    number.

    A half message that has checks left by now, because an operator resumed it or asked for a check, is not discarded.
    """

    __slots__ = ("reason", "transaction_ids")

    def __init__(self, transaction_ids: list[uuid.UUID], reason: str) -> None:
        super().__init__()
        self.transaction_ids = transaction_ids
        self.reason = reason

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        topic = await topics.own(topics.DISCARDED, queues=1)
        for one in operations:
            parameters = {"transaction_ids": one.transaction_ids, "reserved_hours": settings.RESERVED_HOURS}
            halves = await batch.read(DISCARD_HALVES, parameters)
            for half in halves:
                remark = f"{one.reason}; {half.last_failure}" if half.last_failure else one.reason
                batch.insert(INSERT_OPERATIONS, operation(half, "DISCARD", "limit", kept(remark)))
                for publication in _publications(half, topic.id):
                    await publish(batch, publication)
            one.result = len(halves)


def _publications(half: DiscardedHalf, topic_id: int) -> list[Publication]:
    """The entries of a discarded half message. Each has the number of checks of its transaction."""
    return [
        Publication(
            message_id=message_id,
            topic_id=topic_id,
            queue_id=0,
            log_segment=half.log_segment,
            log_offset=log_offset,
            tags_code=tags_code,
            reconsume_times=half.check_times,
        )
        for message_id, log_offset, tags_code in zip(half.message_ids, half.log_offsets, half.tags_codes, strict=True)
    ]


async def resume(transaction_id: uuid.UUID, reason: str | None, note: Note | None = None) -> Awaited:
    """Makes a discarded transaction pending again, with 0 checks.

    Raises TransactionNotFound if no discarded transaction has this id, TransactionEnded if the discarded transaction is
    decided, TransactionDiscarded if it is older than the retention, because checks must not keep its message longer.
    """
    try:
        return await writer.run(Resume(transaction_id, reason), note)
    except TransactionEnded:
        await _require_once_discarded(transaction_id)
        raise


class Resume(OfTransaction[Awaited]):
    """Resumes a discarded transaction, by one update, and records the operation."""

    __slots__ = ("reason",)

    def __init__(self, transaction_id: uuid.UUID, reason: str | None) -> None:
        super().__init__(transaction_id)
        self.reason = reason

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            transaction_id, reason = one.transaction_id, one.reason
            parameters = {"transaction_id": transaction_id, "reserved_hours": settings.RESERVED_HOURS}
            halves = await batch.read(RESUME_HALVES, parameters)
            if not halves:
                one.refusal = await _refusal(batch, transaction_id)
                continue
            [half] = halves
            batch.insert(INSERT_OPERATIONS, operation(half, "RESUME", "operator", kept(reason)))
            one.before = {"state": "DISCARDED"}
            one.result = results.awaited(transaction_id, half.check_times, half.next_check_at)


async def _refusal(batch: Batch, transaction_id: uuid.UUID) -> Refusal:
    """The refusal of a resume that found no row. Raises Overtaken if the transaction was discarded after that."""
    found = await batch.read(FIND_TRANSACTIONS, {"transaction_ids": [transaction_id]})
    if not found:
        # TransactionNotFound makes the caller ask the other cells, which may have the transaction.
        return TransactionNotFound(states.not_discarded(transaction_id).detail)
    if found[0].state == "PREPARED":
        return states.not_discarded(transaction_id)
    if found[0].state != "DISCARDED":
        state = found[0].state
        return TransactionEnded(f"Transaction {transaction_id} is {state} already: there is nothing to resume.")
    if found[0].stored_at >= batch.now - timedelta(hours=settings.RESERVED_HOURS):
        raise Overtaken
    return TransactionDiscarded(
        f"Transaction {transaction_id} is older than the retention of {settings.RESERVED_HOURS} hours, so it "
        f"cannot be checked again: decide it at /v1/discarded/{transaction_id}/resolve."
    )


async def resolve(transaction_id: uuid.UUID, state: str, reason: str, note: Note | None = None) -> Ended:
    """Decides a discarded transaction: an operator's COMMIT or ROLLBACK, with the reason.

    The result is the answer to an end. Raises TransactionNotFound if the transaction was never discarded,
    TransactionEnded if it was decided the other way.
    """
    end = End(transaction_id, state, "operator", remark=reason, discarded=True)
    try:
        answer = await writer.run(end, note)
    except TransactionEnded:
        await _require_once_discarded(transaction_id)
        raise
    if end.before is None:
        await _require_once_discarded(transaction_id)
    return answer


async def _require_once_discarded(transaction_id: uuid.UUID) -> None:
    if all(row.decision != "DISCARD" for row in await history.operations_of(transaction_id)):
        raise states.not_discarded(transaction_id)


async def resolve_any(transaction_id: uuid.UUID, state: str, reason: str, note: Note | None = None) -> Ended:
    """Decides a pending or discarded transaction as an operator, with the reason.

    The result is the answer to an end. Raises TransactionNotFound, or TransactionEnded if it was decided the other way.
    """
    end = End(transaction_id, state, "operator", remark=reason, discarded=None)
    return await writer.run(end, note)


async def roll_back_leftovers() -> int:
    """Rolls back discarded half messages in the segment whose log is dropped next. Returns their number.

    The segment's log is kept until all of them are rolled back. Each rollback is recorded as an operation, so that the
    refusal of a late end can name the state of the transaction.
    """
    leaving_id = await retention.leaving()
    ended = 0
    while leaving_id is not None:
        found = await connections.read(
            FIND_LEFTOVERS, {"leaving_id": leaving_id, "max_halves": MAX_ROLLED_BACK_AT_ONCE}
        )
        ended += sum(await asyncio.gather(*(_roll_back(transaction_id) for transaction_id in found)))
        if len(found) < MAX_ROLLED_BACK_AT_ONCE:
            break
    return ended


async def _roll_back(transaction_id: uuid.UUID) -> bool:
    """Rolls a transaction back. Returns False if an operator decided it first."""
    try:
        await writer.run(End(transaction_id, "ROLLBACK", "limit", remark=REMARK, discarded=True))
    except Refusal as refusal:
        if refusal.code not in ("transaction_ended", "transaction_not_found"):
            raise
        return False
    return True
