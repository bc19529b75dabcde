"""The reasons of nacks, kept with the message: a consumer's text, or the server's answer to a push."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from delivery.rows import FailedReceipt, NackRow
from store.commit.batch import Batch
from store.db import connections
from store.db.statements import Statement
from store.errors import MessageIllegal
from store.messages.texts import is_blank, legible


class FoundNack(NamedTuple):
    """Whether the table has a reason of the nack."""

    found: bool


FIND_NACK_OF = Statement(__file__, "find_nack_of", FoundNack)
FIND_NACKS = Statement(__file__, "find_nacks", NackRow)
INSERT_NACKS = Statement(__file__, "insert_nacks")

MAX_REASON = 1000
# The most nacks of a message in a trace; older nacks are left out.
MAX_NACKS = 500


def validate(reason: str | None) -> str | None:
    """The reason as it is stored; None for a blank reason.

    Raises MessageIllegal for more than MAX_REASON characters.
    """
    if reason is None or is_blank(reason):
        return None
    if len(reason) > MAX_REASON:
        raise MessageIllegal(f"reason has {len(reason)} characters: give {MAX_REASON} or fewer.")
    return legible(reason)


def keep(batch: Batch, receipt: FailedReceipt, reason: str | None) -> None:
    """Adds a row with the reason of a failed delivery to the batch that writes the retry; no row without a reason."""
    if reason is not None:
        row = {"group_id": receipt.group_id, "log_offset": receipt.log_offset, "nonce": receipt.nonce}
        batch.insert(INSERT_NACKS, {**row, "reconsume_times": receipt.reconsume_times, "reason": reason})


async def is_unexplained(group_id: int, log_offset: int, reconsume_times: int) -> bool:
    """Whether a retried message may have killed its consumer: its last delivery ended without a reason.

    `reconsume_times` is the number of retries, at least 1. Raises SystemBusy.
    """
    last = {"group_id": group_id, "log_offset": log_offset, "reconsume_times": reconsume_times - 1}
    [row] = await connections.read(FIND_NACK_OF, last)
    return not row.found


async def of_message(message_id: uuid.UUID) -> Sequence[NackRow]:
    """The latest MAX_NACKS nacks of a message that have a reason, the oldest first."""
    rows = await connections.read(FIND_NACKS, {"message_id": message_id, "max_nacks": MAX_NACKS})
    return rows[::-1]
