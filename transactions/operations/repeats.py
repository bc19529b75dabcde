"""Repeats: the answer for a transaction that was begun before, or the refusal of ids that are in use."""

import uuid
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import NamedTuple

from store.commit.batch import Batch
from store.errors import MessageIdReused, Refusal
from store.messages import accept
from store.messages.accept import Accepted
from store.process import runtime
from store.rows import StoredBefore
from transactions import State
from transactions.reads.states import FIND_TRANSACTIONS
from transactions.results import Begun
from transactions.rows import TransactionRow


class Repeat(NamedTuple):
    """A begin whose messages may be stored already. `may_repeat`: the client chose the transaction's id."""

    transaction_id: uuid.UUID
    group_id: int
    accepted: Sequence[Accepted]
    may_repeat: bool


async def answers(batch: Batch, begins: Sequence[Repeat]) -> dict[uuid.UUID, Begun | Refusal]:
    """The outcomes for transactions that are stored already, found by the transaction's id or the id of a message.

    Each statement sees everything that was committed before it. Transactions are read first, so that the messages of a
    transaction that is found are visible to the second statement. A transaction that another process begins between the
    two statements is found by its messages.
    """
    known = await _transactions(batch, {one.transaction_id for one in begins if one.may_repeat or batch.again})
    stored = await batch.stored_before([message for one in begins for message in one.accepted])
    named = {row.transaction_id for row in stored.values() if row.transaction_id is not None}
    known |= await _transactions(batch, named - known.keys())
    if not known and not stored:
        return {}
    found: dict[uuid.UUID, Begun | Refusal] = {}
    for one in begins:
        try:
            if (begun := _answer_again(one, stored, known)) is not None:
                found[one.transaction_id] = begun
        except Refusal as refusal:
            found[one.transaction_id] = refusal
    return found


async def _transactions(batch: Batch, ids: Set[uuid.UUID]) -> dict[uuid.UUID, TransactionRow]:
    rows = await batch.read(FIND_TRANSACTIONS, {"transaction_ids": list(ids)}) if ids else ()
    return {row.transaction_id: row for row in rows}


def _answer_again(
    begin: Repeat, stored: Mapping[uuid.UUID, StoredBefore], known: Mapping[uuid.UUID, TransactionRow]
) -> Begun | None:
    """The answer for a transaction that was begun before; None for a new one. Raises MessageIdReused."""
    transaction = known.get(begin.transaction_id)
    for message in begin.accepted:
        row = stored.get(message.message_id)
        if row is None:
            continue
        if transaction is None and not begin.may_repeat:
            # A request without a transaction id is recognised by the id of its message.
            transaction = known.get(row.transaction_id) if row.transaction_id else None
        accept.validate_repeat(message, row, transactional=True)
        if transaction is None or row.transaction_id != transaction.transaction_id:
            raise MessageIdReused(
                f"The message_id {message.message_id} is already used by another message: use a new id."
            )
    if transaction is None:
        return None
    return _answer_repeat(begin, stored, transaction)


def _answer_repeat(begin: Repeat, stored: Mapping[uuid.UUID, StoredBefore], transaction: TransactionRow) -> Begun:
    same_messages = len(begin.accepted) == len(transaction.message_ids)
    if transaction.producer_group_id != begin.group_id or not same_messages:
        raise another_transaction(transaction.transaction_id)
    if any(message.message_id not in stored for message in begin.accepted):
        raise MessageIdReused(
            f"The transaction_id {transaction.transaction_id} was used for other messages: use a new id."
        )
    repeated = answer(
        transaction.transaction_id,
        transaction.message_ids,
        transaction.log_offsets,
        transaction.state,
        transaction.next_check_at if transaction.state == "PREPARED" else None,
    )
    repeated.duplicate = True
    return repeated


def another_transaction(transaction_id: uuid.UUID) -> MessageIdReused:
    """The refusal of a transaction id that another transaction has."""
    return MessageIdReused(f"The transaction_id {transaction_id} was used for another transaction: use a new id.")


def answer(
    transaction_id: uuid.UUID,
    message_ids: Sequence[uuid.UUID],
    log_offsets: Sequence[int],
    state: State,
    next_check_at: datetime | None,
) -> Begun:
    """The answer for a transaction in its current state."""
    begun = Begun(transaction_id, message_ids[0], list(message_ids), log_offsets[0], state, next_check_at)
    if (cell := runtime.placement.label()) is not None:
        begun.cell = cell
    return begun
