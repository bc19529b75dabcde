"""Begins by the stepwise writer: what is written of a new transaction, and the answer to one that was begun before."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from scheduling import delays
from store.commit.batch import Batch, Kind, Pending
from store.db.arrays import literal
from store.db.statements import Statement
from store.errors import (
    DelayIllegal,
    MessageIdReused,
    Refusal,
)
from store.messages import Record, accept
from store.messages.accept import Accepted, StoredBefore
from store.messages.properties import tags_code_of
from transactions import groups, schedule
from transactions.answers import Begun
from transactions.rows import State, TransactionRow


class HeldGroup(NamedTuple):
    """A producer group that exists, and cannot be deleted before the transaction ends."""

    id: int


FIND_TRANSACTIONS = Statement(__file__, "find_transactions", TransactionRow)
HOLD_GROUPS = Statement(__file__, "hold_groups", HeldGroup)
INSERT_HALVES = Statement(__file__, "insert_halves")


@dataclass(slots=True)
class Begin:
    """One transaction to be begun, and on each attempt to write it the records of its messages."""

    transaction_id: uuid.UUID
    group_id: int
    group_name: str
    endpoint_id: int | None
    immunity_seconds: float
    api_key_id: int | None
    accepted: list[Accepted]
    may_repeat: bool
    # What it is answered when it was not begun before.
    refusal: Refusal | None = None
    records: list[Record] = field(default_factory=list)


class Begins(Kind[Begin]):
    """Half messages are written in a batch: one append, one insert of what their checks need."""

    async def decide(self, batch: Batch, pending: list[Pending[Begin]]) -> None:
        before = await self._begun_before(batch, pending)
        group_ids = sorted({one.request.group_id for one in pending})
        held = {row.id for row in await batch.read(HOLD_GROUPS, {"group_ids": group_ids})}
        for one in pending:
            begun = one.request
            one.outcome = before.get(begun.transaction_id) or begun.refusal or _illegal_delay(begun, batch)
            if one.outcome is None and begun.group_id not in held:
                one.outcome = groups.absent(begun.group_name)
            if one.outcome is None:
                begun.records = [message.record(begun.transaction_id, begun.group_id) for message in begun.accepted]
                batch.append(begun.records)

    async def _begun_before(self, batch: Batch, pending: list[Pending[Begin]]) -> dict[uuid.UUID, Begun | Refusal]:
        """The outcomes of transactions that are known already, by their own id or by that of a message."""
        stored = await batch.stored_before([message for one in pending for message in one.request.accepted])
        ids = {one.request.transaction_id for one in pending if one.request.may_repeat or batch.again}
        ids.update(row.transaction_id for row in stored.values() if row.transaction_id is not None)
        if not ids and not stored:
            return {}
        rows = await batch.read(FIND_TRANSACTIONS, {"transaction_ids": list(ids)})
        known = {row.transaction_id: row for row in rows}
        outcomes = {one.request.transaction_id: _repeated(one.request, stored, known) for one in pending}
        return {id_: outcome for id_, outcome in outcomes.items() if outcome is not None}

    async def place(self, batch: Batch, pending: list[Pending[Begin]]) -> None:
        for one in pending:
            batch.insert(INSERT_HALVES, _half(one.request))

    async def record(self, batch: Batch, pending: list[Pending[Begin]]) -> None:
        for one in pending:
            begun = one.request
            next_check_at = batch.now + timedelta(seconds=begun.immunity_seconds)
            ids = [record.message_id for record in begun.records]
            offsets = [record.log_offset for record in begun.records]
            one.outcome = _answer(begun.transaction_id, ids, offsets, "PREPARED", next_check_at)


BEGINS = Begins()


def _illegal_delay(begun: Begin, batch: Batch) -> DelayIllegal | None:
    try:
        for message in begun.accepted:
            delays.validate(delays.of_message(message.message), batch.now)
    except DelayIllegal as refusal:
        return refusal
    return None


def _repeated(
    begun: Begin, stored: dict[uuid.UUID, StoredBefore], known: dict[uuid.UUID, TransactionRow]
) -> Begun | Refusal | None:
    """The answer to a transaction that was begun before, the refusal of ids used otherwise, or None for a new one."""
    transaction = known.get(begun.transaction_id)
    for message in begun.accepted:
        row = stored.get(message.message_id)
        if row is None:
            continue
        if transaction is None and not begun.may_repeat:
            # Without a transaction id of its own the request is known by its message.
            transaction = known.get(row.transaction_id) if row.transaction_id else None
        try:
            accept.validate_repeat(message, row, transactional=True)
        except Refusal as refusal:
            return refusal
        if transaction is None or row.transaction_id != transaction.transaction_id:
            return MessageIdReused(f"The message_id {message.message_id} is that of another message: use a new id.")
    if transaction is None:
        return None
    return _answer_repeat(begun, stored, transaction)


def _answer_repeat(begun: Begin, stored: dict[uuid.UUID, StoredBefore], transaction: TransactionRow) -> Begun | Refusal:
    same_messages = len(begun.accepted) == len(transaction.message_ids)
    if transaction.producer_group_id != begun.group_id or not same_messages:
        return another_transaction(transaction.transaction_id)
    if any(message.message_id not in stored for message in begun.accepted):
        return MessageIdReused(
            f"The transaction_id {transaction.transaction_id} was used for other messages: use a new id."
        )
    answer = _answer(
        transaction.transaction_id,
        transaction.message_ids,
        transaction.log_offsets,
        transaction.state,
        transaction.next_check_at if transaction.state == "PREPARED" else None,
    )
    answer.duplicate = True
    return answer


def another_transaction(transaction_id: uuid.UUID) -> MessageIdReused:
    """The refusal of a transaction's id that another one has."""
    return MessageIdReused(f"The transaction_id {transaction_id} was used for another transaction: use a new id.")


def _half(begun: Begin) -> dict[str, object]:
    records, accepted = begun.records, begun.accepted
    waits = [delays.of_message(one.message) for one in accepted]
    return {
        "transaction_id": begun.transaction_id,
        "producer_group_id": begun.group_id,
        "endpoint_id": begun.endpoint_id,
        "immunity_seconds": begun.immunity_seconds,
        "line": schedule.line(begun.immunity_seconds),
        "api_key_id": begun.api_key_id,
        "log_offsets": literal(record.log_offset for record in records),
        "message_ids": literal(record.message_id for record in records),
        "topic_ids": literal(record.topic_id for record in records),
        "queue_ids": literal(record.queue_id for record in records),
        "tags_codes": literal(tags_code_of(record.tags) for record in records),
        "delays": msgspec.json.encode(waits).decode() if any(waits) else None,
    }


def _answer(
    transaction_id: uuid.UUID,
    message_ids: Sequence[uuid.UUID],
    log_offsets: Sequence[int],
    state: State,
    next_check_at: datetime | None,
) -> Begun:
    return Begun(transaction_id, message_ids[0], list(message_ids), log_offsets[0], state, next_check_at)
