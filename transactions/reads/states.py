"""The states of transactions, and the refusals that name a state."""

import contextlib
import uuid
from collections.abc import Iterable

from store.cells import cells
from store.commit.batch import Overtaken
from store.db import connections, sync
from store.db.statements import Statement
from store.errors import Refusal
from store.messages.texts import counted
from store.reading import holders
from transactions import State
from transactions.errors import NotDiscarded, TransactionDiscarded, TransactionEnded, TransactionNotFound
from transactions.rows import TransactionRow

FIND_TRANSACTIONS = Statement(__file__, "find_transactions", TransactionRow)


async def find(transaction_id: uuid.UUID) -> TransactionRow | None:
    """The row of a transaction, or None."""
    async with holding(transaction_id):
        rows = await connections.read(FIND_TRANSACTIONS, {"transaction_ids": [transaction_id]})
    return rows[0] if rows else None


def holding(transaction_id: uuid.UUID) -> contextlib.AbstractAsyncContextManager[None]:
    """A context manager: the code of its block works for the cell that has the transaction. For arguments and errors
    see `holders.of_id`.
    """
    return holders.of_id(transaction_id, FIND_TRANSACTIONS, {"transaction_ids": [transaction_id]})


def of_each(transaction_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, State]:
    """The state of each of these transactions. Transactions that are not kept are missing."""
    ids = list(transaction_ids)
    found = cells.ask(lambda: sync.read(FIND_TRANSACTIONS, {"transaction_ids": ids})) if ids else {}
    return {row.transaction_id: row.state for rows in found.values() for row in rows}


def not_pending(transaction_id: uuid.UUID, transaction: TransactionRow | None) -> Refusal:
    """The refusal to check a transaction. An earlier statement of the batch has found that the transaction is not
    pending.

    Raises Overtaken if the transaction has become pending meanwhile.
    """
    if transaction is None:
        return not_found(transaction_id)
    if transaction.state == "PREPARED":
        raise Overtaken
    if transaction.state == "DISCARDED":
        return discarded(transaction)
    return TransactionEnded(
        f"Transaction {transaction_id} is already {transaction.state}: there is no need for a check."
    )


def not_found(transaction_id: uuid.UUID, advice: str = "") -> TransactionNotFound:
    """The refusal for an id without a transaction."""
    sentence = f"There is no transaction {transaction_id}: it was never stored, or retention has deleted it."
    return TransactionNotFound(f"{sentence} {advice}".strip())


def discarded(transaction: TransactionRow) -> TransactionDiscarded:
    """The refusal to end a discarded transaction, which only an operator can decide."""
    return TransactionDiscarded(
        f"Transaction {transaction.transaction_id} was discarded after {counted(transaction.check_times, 'check')}: "
        "an operator can resume or resolve it at /v1/discarded."
    )


def not_discarded(transaction_id: uuid.UUID) -> NotDiscarded:
    """The refusal of an operator's decision about a transaction that is not discarded."""
    return NotDiscarded(
        f"There is no discarded transaction {transaction_id}: GET /v1/transactions/{transaction_id} shows its state."
    )
