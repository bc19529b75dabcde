"""A check that an operator requests: makes a pending transaction due at once."""

import uuid
from collections.abc import Sequence
from typing import Self

from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Note
from store.db.statements import Statement
from transactions import results
from transactions.operations.located import OfTransaction
from transactions.reads import states
from transactions.reads.states import FIND_TRANSACTIONS
from transactions.results import Awaited
from transactions.rows import NextCheck

CHECK_NOW = Statement(__file__, "check_now", NextCheck)


async def make_due(transaction_id: uuid.UUID, note: Note | None = None) -> Awaited:
    """Makes a pending transaction due for a check now: the next tick of beat or the producer's next poll finds it.

    Starts no check itself, because that would start the due checks of all groups in this web process. Raises
    TransactionNotFound, TransactionDiscarded or TransactionEnded if the transaction is not pending.
    """
    return await writer.run(QuestionNow(transaction_id), note)


class QuestionNow(OfTransaction[Awaited]):
    """Makes a half message due for a check at once, by one update."""

    __slots__ = ()

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            rows = await batch.read(CHECK_NOW, {"transaction_id": one.transaction_id})
            if rows:
                one.before = {"state": "PREPARED"}
                one.result = results.awaited(one.transaction_id, rows[0].check_times, rows[0].next_check_at)
            else:
                found = await batch.read(FIND_TRANSACTIONS, {"transaction_ids": [one.transaction_id]})
                one.refusal = states.not_pending(one.transaction_id, found[0] if found else None)
