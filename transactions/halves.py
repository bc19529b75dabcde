"""Half messages: stored, durable, and seen by no consumer until their transaction is committed."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
from django.conf import settings

from access.limits import Allowance
from scheduling import delays
from store.commit import accept, writer
from store.commit.accept import Accepted
from store.commit.batch import Batch, Kind, Pending
from store.commit.pipelined import MAX_BATCH_BYTES
from store.db import connections
from store.db.arrays import literal
from store.db.statements import Statement
from store.db.uuid7 import derived_id, new_id
from store.errors import (
    BatchIllegal,
    DelayIllegal,
    GroupNotExist,
    MessageIdReused,
    MessageIllegal,
    MessageTooLarge,
    Refusal,
)
from store.messages import Message, Record
from store.queues import tags_code_of
from store.rows import StoredBefore
from transactions import endpoints, groups
from transactions.answers import Begun
from transactions.rows import HeldGroup, State, TransactionRow
from transactions.writing import immunity, limits
from transactions.writing.pipelined import Beginning

FIND_TRANSACTIONS = Statement(__file__, "find_transactions", TransactionRow)
HOLD_GROUPS = Statement(__file__, "hold_groups", HeldGroup)
INSERT_HALVES = Statement(__file__, "insert_halves")

MAX_MESSAGES = 128


class BeginTransaction(Message, kw_only=True, forbid_unknown_fields=True):
    """A half message as its producer sends it: one message, or several that are decided together."""

    producer_group: str
    transaction_id: uuid.UUID | None = None
    check_immunity_seconds: float | None = None
    check_url: str | None = None
    messages: list[Message] | None = None


def topics_of(request: BeginTransaction) -> set[str]:
    """The names of the topics that a transaction wants to write to."""
    return {message.topic for message in request.messages or (request,)}


def count(request: BeginTransaction) -> int:
    """The number of messages of a transaction, one at least."""
    return len(request.messages or (request,))


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


async def begin(request: BeginTransaction, traceparent: str | None = None, allowance: Allowance | None = None) -> Begun:
    """Stores a transaction's messages as half messages, within the allowance of the caller's key.

    Answers the fields of POST /v1/transactions; a transaction that was begun before is answered as it stands, with
    `duplicate`. The field `check_immunity_seconds` goes before RocketMQ's property. Raises a Refusal when a rule is
    broken or the broker cannot write now; nothing is stored then.
    """
    taken = immunity.taken(request.messages or (request,))
    if request.check_immunity_seconds is None:
        request.check_immunity_seconds = taken
    try:
        return await _begin(request, traceparent, allowance)
    except GroupNotExist:
        # This process may remember a group that another one has just deleted.
        groups.forget(request.producer_group)
    return await _begin(request, traceparent, allowance)


async def _begin(request: BeginTransaction, traceparent: str | None, allowance: Allowance | None) -> Begun:
    given = _messages_of(request)
    immunity_seconds = immunity.in_seconds(request.check_immunity_seconds)
    group = await groups.for_producing(request.producer_group)
    endpoint_id = await endpoints.of_url(group, request.check_url) if request.check_url is not None else None
    transaction_id = request.transaction_id or new_id()
    accepted = [
        await accept.accept(message, traceparent=traceparent, message_id=_derived_id(request.transaction_id, place))
        for place, message in enumerate(given)
    ]
    _validate_together(accepted)
    begun = Begin(
        transaction_id=transaction_id,
        group_id=group.id,
        group_name=group.name,
        endpoint_id=endpoint_id,
        immunity_seconds=immunity_seconds,
        api_key_id=limits.counted_key(allowance),
        accepted=accepted,
        may_repeat=request.transaction_id is not None,
        refusal=await limits.of_group(group) or await limits.of_key(allowance),
    )
    if begun.refusal is not None and not any(one.may_repeat for one in accepted):
        raise begun.refusal
    size = accept.size_of([one.content for one in accepted])
    if begun.refusal is None and _is_plain(accepted) and size < MAX_BATCH_BYTES:
        kept = await writer.write(
            Beginning(
                accepted[0],
                transaction_id,
                group.id,
                endpoint_id,
                immunity_seconds,
                begun.api_key_id,
                may_repeat=begun.may_repeat,
            )
        )
        if kept is not None:
            next_check_at = kept.stored_at + timedelta(seconds=immunity_seconds)
            return _answer(transaction_id, [accepted[0].message_id], [kept.log_offset], "PREPARED", next_check_at)
    answer: Begun = await writer.submit(BEGINS, begun, key=transaction_id, size=size)
    return answer


def _is_plain(accepted: Sequence[Accepted]) -> bool:
    """One message without a delay, as almost all are: what a pipelined batch takes."""
    return len(accepted) == 1 and delays.of_message(accepted[0].message) is None


def _messages_of(request: BeginTransaction) -> Sequence[Message]:
    if request.messages is None:
        return (request,)
    if any(getattr(request, name) not in (None, "") for name in Message.__struct_fields__):
        raise MessageIllegal("A transaction has one message at the top or several in messages: give one of the two.")
    if not request.messages:
        raise BatchIllegal("messages is empty: give at least one message.")
    if len(request.messages) > MAX_MESSAGES:
        raise BatchIllegal(f"messages has {len(request.messages)} messages, the limit is {MAX_MESSAGES}.")
    return request.messages


def _derived_id(transaction_id: uuid.UUID | None, place: int) -> uuid.UUID | None:
    """The id of a message that brings none but whose transaction does: the same again when the request is repeated."""
    return None if transaction_id is None else derived_id(transaction_id, f"message {place}")


def _validate_together(accepted: Sequence[Accepted]) -> None:
    size = sum(len(one.body) for one in accepted)
    if size > settings.MAX_MESSAGE_BYTES:
        raise MessageTooLarge(f"The bodies have {size} bytes together, the limit is {settings.MAX_MESSAGE_BYTES}.")
    if len({one.message_id for one in accepted}) < len(accepted):
        raise MessageIdReused("Two messages of the transaction have the same message_id: give each its own.")


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
        stored = await accept.stored_before(batch, [message for one in pending for message in one.request.accepted])
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
        return MessageIdReused(
            f"The transaction_id {transaction.transaction_id} was used for another transaction: use a new id."
        )
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


def _half(begun: Begin) -> dict[str, object]:
    records, accepted = begun.records, begun.accepted
    waits = [delays.of_message(one.message) for one in accepted]
    return {
        "transaction_id": begun.transaction_id,
        "producer_group_id": begun.group_id,
        "endpoint_id": begun.endpoint_id,
        "immunity_seconds": begun.immunity_seconds,
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


async def find(transaction_id: uuid.UUID) -> TransactionRow | None:
    """What is known of a transaction now, or None."""
    rows = await connections.read(FIND_TRANSACTIONS, {"transaction_ids": [transaction_id]})
    return rows[0] if rows else None
