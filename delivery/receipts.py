"""Receipts: the proof of a delivery, and the ack that ends it."""

import base64
import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings

from delivery import groups
from delivery.errors import ReceiptExpired
from store import groupcommit
from store.errors import MessageIllegal, Refusal
from store.groupcommit import Batch, Kind, Pending
from store.statements import Statement

ACK_RECEIPTS = Statement(__file__, "ack_receipts")
MAX_HANDLES = 1000
PACKED = struct.Struct(">IIIqq")


class Handle(NamedTuple):
    """What a receipt handle holds: the row it proves, and the nonce of this very delivery."""

    group_id: int
    topic_id: int
    queue_id: int
    queue_offset: int
    nonce: int


def handle(group_id: int, topic_id: int, queue_id: int, queue_offset: int, nonce: int) -> str:
    """A receipt handle; opaque to consumers."""
    packed = PACKED.pack(group_id, topic_id, queue_id, queue_offset, nonce)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def unpack(given: str) -> Handle | None:
    """What a handle holds, or None when it never was one of ours."""
    try:
        return Handle(*PACKED.unpack(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))))
    except (ValueError, struct.error):
        return None


def judge_invisible(seconds: float | None) -> float:
    """The invisible time of a delivery in seconds.

    Raises MessageIllegal outside MIN_INVISIBLE_SECONDS to MAX_INVISIBLE_SECONDS.
    """
    if seconds is None:
        return float(settings.DEFAULT_INVISIBLE_SECONDS)
    shortest, longest = settings.MIN_INVISIBLE_SECONDS, settings.MAX_INVISIBLE_SECONDS
    if not shortest <= seconds <= longest:
        raise MessageIllegal(f"invisible_seconds {seconds} is not between {shortest} and {longest}.")
    return seconds


@dataclass(slots=True)
class Ack:
    """Handles of one group that are to be acked together; None for what is no handle of the group."""

    handles: list[Handle | None]


async def ack(group_name: str, given: list[str]) -> list[Refusal | None]:
    """Acks deliveries: each is done for the group. In the order given: None, or ReceiptExpired.

    Raises GroupNotExist, or MessageIllegal for no or too many handles.
    """
    group = await groups.existing(group_name)
    if not 1 <= len(given) <= MAX_HANDLES:
        raise MessageIllegal(f"receipt_handles has {len(given)} handles: give 1 to {MAX_HANDLES}.")
    handles = [held if (held := unpack(one)) and held.group_id == group.id else None for one in given]
    acked: set[Handle] = await groupcommit.submit(ACKS, Ack(handles), urgent=True)
    return [None if held in acked else expired(one) for one, held in zip(given, handles, strict=True)]


def expired(given: str) -> ReceiptExpired:
    """The refusal of a handle that proves nothing any more."""
    return ReceiptExpired(
        f"The receipt {given[:60]} is acked already, or its invisible time is over: the message comes again if it is not "
        "done; ack within the invisible time, or extend it."
    )


class Acks(Kind[Ack]):
    """Acks are written in a batch: one delete for all of them."""

    async def decide(self, batch: Batch, pending: list[Pending[Ack]]) -> None:
        handles = sorted({held for one in pending for held in one.request.handles if held is not None})
        acked = await self._delete(batch, handles) if handles else set()
        for one in pending:
            one.outcome = acked.intersection(one.request.handles)

    async def _delete(self, batch: Batch, handles: list[Handle]) -> set[Any]:
        columns: dict[str, Any] = {name: [getattr(held, name) for held in handles] for name in Handle._fields}
        rows = await batch.read(ACK_RECEIPTS, columns)
        return {Handle(*row) for row in rows}


ACKS = Acks()
