"""The reasons of nacks: why a consumer gave a delivery back, or what a push was answered, kept with the message."""

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
    """Whether there is such a nack."""

    found: bool


FIND_NACK_OF = Statement(__file__, "find_nack_of", FoundNack)
FIND_NACKS = Statement(__file__, "find_nacks", NackRow)
INSERT_NACKS = Statement(__file__, "insert_nacks")

MAX_REASON = 1000
# Of one message in a trace, the latest.
MAX_NACKS = 500


def validate(reason: str | None) -> str | None:
    """The reason as it is kept; None for a blank one.

    Raises MessageIllegal for more than MAX_REASON characters.
    """
    if reason is None or is_blank(reason):
        return None
    if len(reason) > MAX_REASON:
        raise MessageIllegal(f"reason has {len(reason)} characters: give {MAX_REASON} or fewer.")
    return legible(reason)


def keep(batch: Batch, receipt: FailedReceipt, reason: str | None) -> None:
    """Adds the row with the reason of a failed delivery, which is written with its retry; none without a reason."""
    if reason is not None:
        row = {"group_id": receipt.group_id, "log_offset": receipt.log_offset, "nonce": receipt.nonce}
        batch.insert(INSERT_NACKS, {**row, "reconsume_times": receipt.reconsume_times, "reason": reason})


async def is_unexplained(group_id: int, log_offset: int, reconsume_times: int) -> bool:
    """Whether a message that comes again may have killed its consumer: the last delivery ended without a reason.

    `reconsume_times` are its retries, 1 at least. Raises SystemBusy.
    """
    last = {"group_id": group_id, "log_offset": log_offset, "reconsume_times": reconsume_times - 1}
    [row] = await connections.read(FIND_NACK_OF, last)
    return not row.found


async def of_message(message_id: uuid.UUID) -> Sequence[NackRow]:
    """The kept nacks of a message, the oldest first, the latest MAX_NACKS of them."""
    rows = await connections.read(FIND_NACKS, {"message_id": message_id, "max_nacks": MAX_NACKS})
    return rows[::-1]
