"""Receipts: the proof of a delivery, and what its holder says of it: ack, nack, extend."""

import base64
import struct
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings

from delivery import groups, ordered, redelivery
from delivery.errors import ReceiptExpired
from delivery.rows import AckedReceipt, LockedReceipt
from scheduling.publish import publish
from store import notifier
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db.statements import Statement
from store.errors import MessageIllegal, Refusal

ACK_RECEIPTS = Statement(__file__, "ack_receipts", AckedReceipt)
EXTEND_RECEIPTS = Statement(__file__, "extend_receipts", AckedReceipt)
LOCK_RECEIPTS = Statement(__file__, "lock_receipts", LockedReceipt)
TAKE_RECEIPTS = Statement(__file__, "take_receipts", LockedReceipt)
MAX_HANDLES = 1000
# Ids as PostgreSQL has them: a forged handle is none that it cannot look for.
PACKED = struct.Struct(">iiiqq")


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
class Held:
    """Handles of one group about which its consumer says something: done, not done, or not done yet."""

    handles: list[Handle]
    delay_seconds: float | None = None
    invisible_seconds: float = 0


async def ack(group_name: str, given: list[str]) -> list[Refusal | None]:
    """Acks deliveries: each is done for the group. In the order given: None, or ReceiptExpired.

    Raises GroupNotExist, or MessageIllegal for no or too many handles.
    """
    return await _settle(ACKS, group_name, given)


async def nack(group_name: str, given: list[str], delay_seconds: float | None) -> list[Refusal | None]:
    """Gives deliveries back: each comes again after the group's retry delay, or after `delay_seconds`.

    In the order given: None, or ReceiptExpired. Raises GroupNotExist or MessageIllegal.
    """
    if delay_seconds is not None and not 0 <= delay_seconds <= settings.MAX_TIMER_DELAY_SECONDS:
        raise MessageIllegal(f"delay_seconds {delay_seconds} is not between 0 and {settings.MAX_TIMER_DELAY_SECONDS}.")
    return await _settle(NACKS, group_name, given, delay_seconds=delay_seconds)


async def extend(group_name: str, given: list[str], invisible_seconds: float | None) -> list[Refusal | None]:
    """Gives deliveries more time: `invisible_seconds` from now on. The handles stay the same.

    In the order given: None, or ReceiptExpired. Raises GroupNotExist or MessageIllegal.
    """
    return await _settle(EXTENSIONS, group_name, given, invisible_seconds=judge_invisible(invisible_seconds))


async def _settle(kind: Kind[Held], group_name: str, given: list[str], **wishes: Any) -> list[Refusal | None]:
    group = await groups.existing(group_name)
    if not 1 <= len(given) <= MAX_HANDLES:
        raise MessageIllegal(f"receipt_handles has {len(given)} handles: give 1 to {MAX_HANDLES}.")
    unpacked = [held if (held := unpack(one)) and held.group_id == group.id else None for one in given]
    handles = [held for held in unpacked if held is not None]
    if kind is NACKS and group.ordered:
        kind = HOLDS
    settled: set[Handle] = await writer.submit(kind, Held(handles, **wishes), urgent=True) if handles else set()
    if group.ordered:
        # Its queue is free for the next batch.
        notifier.notify(Counter(held.topic_id for held in settled))
    return [None if held in settled else expired(one) for one, held in zip(given, unpacked, strict=True)]


def expired(given: str) -> ReceiptExpired:
    """The refusal of a handle that proves nothing any more."""
    return ReceiptExpired(
        f"The receipt {given[:60]} is acked already, or its invisible time is over: "
        "a message that is not done comes again; ack within the invisible time, or extend it."
    )


def _columns(handles: Iterable[Handle]) -> dict[str, Any]:
    columns = zip(*sorted(handles), strict=True)
    return dict(zip(Handle._fields, map(list, columns), strict=True))


def _handle_of(row: LockedReceipt) -> Handle:
    return Handle(row.group_id, row.topic_id, row.queue_id, row.queue_offset, row.nonce)


async def _settled(
    batch: Batch, statement: Statement[AckedReceipt], handles: set[Handle], **wishes: object
) -> set[Handle]:
    """The handles whose deliveries a statement settled.

    One that another process extended at this very moment may be missed by the statement's snapshot: what is missing is
    looked for once more.
    """
    settled: set[Handle] = set()
    for _ in range(2):
        if left := sorted(handles - settled):
            rows = await batch.read(statement, {**wishes, **_columns(left)})
            settled.update(left[row.place - 1] for row in rows)
    return settled


async def _taken(
    batch: Batch, statement: Statement[LockedReceipt], handles: Set[Handle]
) -> dict[Handle, LockedReceipt]:
    """The receipts that a statement takes or locks, by their handles; what is missing is looked for once more, too."""
    taken: dict[Handle, LockedReceipt] = {}
    for _ in range(2):
        if left := handles - taken.keys():
            taken |= {_handle_of(row): row for row in await batch.read(statement, _columns(left))}
    return taken


class Acks(Kind[Held]):
    """Acks are written in a batch: one delete for all of them."""

    lane = "acks"

    async def decide(self, batch: Batch, pending: list[Pending[Held]]) -> None:
        acked = await _settled(batch, ACK_RECEIPTS, {held for one in pending for held in one.request.handles})
        for one in pending:
            one.outcome = acked.intersection(one.request.handles)


class Nacks(Kind[Held]):
    """Nacks are written in a batch: one delete takes the receipts, and their messages are published again."""

    async def decide(self, batch: Batch, pending: list[Pending[Held]]) -> None:
        wishes = {held: one.request.delay_seconds for one in pending for held in one.request.handles}
        rows = await _taken(batch, TAKE_RECEIPTS, wishes.keys())
        for held, row in rows.items():
            await publish(batch, await redelivery.again(row, wishes[held]))
        for one in pending:
            one.outcome = rows.keys() & set(one.request.handles)


class Holds(Kind[Held]):
    """Nacks of ordered groups: each message stays in its place until its retry, or becomes a dead letter."""

    async def decide(self, batch: Batch, pending: list[Pending[Held]]) -> None:
        wishes = {held: one.request.delay_seconds for one in pending for held in one.request.handles}
        rows = await _taken(batch, LOCK_RECEIPTS, wishes.keys())
        for held, row in rows.items():
            await ordered.hold(batch, row, wishes[held])
        for one in pending:
            one.outcome = rows.keys() & set(one.request.handles)


class Extensions(Kind[Held]):
    """Each extension is one update: they are rare."""

    lane = "acks"

    async def decide(self, batch: Batch, pending: list[Pending[Held]]) -> None:
        for one in pending:
            wish = {"invisible_seconds": one.request.invisible_seconds}
            one.outcome = await _settled(batch, EXTEND_RECEIPTS, set(one.request.handles), **wish)


ACKS = Acks()
NACKS = Nacks()
HOLDS = Holds()
EXTENSIONS = Extensions()
