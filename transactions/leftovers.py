"""Leftovers: discarded halves that no operator decided before their messages go. They are rolled back, for good."""

import asyncio
import uuid

from store import database, retention
from store.errors import Refusal
from store.statements import Statement
from transactions import ends
from transactions.ends import End

FIND_LEFTOVERS = Statement(__file__, "find_leftovers")

MAX_AT_ONCE = 500
REMARK = "discarded, and decided by nobody before its segment was dropped"


async def run() -> int:
    """Rolls back the discarded halves whose log goes next; gives their number. Nothing goes while there is one left.

    The record of it is an operation like any other, so that a late end is told what became of its transaction.
    """
    leaving_id = await retention.leaving()
    ended = 0
    while leaving_id is not None:
        rows = await database.read(FIND_LEFTOVERS, {"leaving_id": leaving_id, "max_halves": MAX_AT_ONCE})
        ended += sum(await asyncio.gather(*(_roll_back(row.transaction_id) for row in rows)))
        if len(rows) < MAX_AT_ONCE:
            break
    return ended


async def _roll_back(transaction_id: uuid.UUID) -> bool:
    """Whether it was this that decided, and not an operator in the last moment."""
    try:
        await ends.decide(End(transaction_id, "ROLLBACK", "limit", None, remark=REMARK, discarded=True))
    except Refusal as refusal:
        if refusal.code not in ("transaction_ended", "transaction_not_found"):
            raise
        return False
    return True
