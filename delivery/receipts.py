"""Receipts: the proof of a delivery, and how its consumer settles it: ack, nack, extend."""

import base64
import struct
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple, Self

from django.conf import settings

from delivery import groups
from delivery.errors import ReceiptExpired
from delivery.retries import nacks, ordered, redelivery
from delivery.rows import FailedReceipt, GroupFacts
from scheduling.publish import publish
from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.commit.pipelined import Request
from store.db import arrays
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.errors import MessageIllegal, Refusal, require_between
from store.notices import notifier


class SettledHandle(NamedTuple):
    """A handle whose delivery was acked or extended: its number in the arrays, from 1."""

    number: int


ACK_RECEIPTS = Statement(__file__, "ack_receipts", SettledHandle)
EXTEND_RECEIPTS = Statement(__file__, "extend_receipts", SettledHandle)
LOCK_RECEIPTS = Statement(__file__, "lock_receipts", FailedReceipt)
TAKE_RECEIPTS = Statement(__file__, "take_receipts", FailedReceipt)

MAX_HANDLES = 1000
# What a handle adds to a batch.
HANDLE_BYTES = 64
# Widths match integer and bigint, so a forged handle cannot overflow a parameter.
PACKED = struct.Struct(">iiiqq")


class Handle(NamedTuple):
    """What a receipt handle holds: the key of the receipt's row, and the nonce of this very delivery."""

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
    """What a handle holds, or None when no broker made it."""
    try:
        return Handle(*PACKED.unpack(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))))
    except (ValueError, struct.error):
        return None


def columns(handles: Iterable[Handle]) -> dict[str, object]:
    """The parameters of the statements that take handles: sorted, so that two of them lock rows in the same order."""
    ordered_handles = sorted(handles)
    return {name: [getattr(one, name) for one in ordered_handles] for name in Handle._fields}


def invisible_time(seconds: float | None) -> float:
    """The invisible time of a delivery in seconds; None: DEFAULT_INVISIBLE_SECONDS.

    Raises MessageIllegal outside MIN_INVISIBLE_SECONDS to MAX_INVISIBLE_SECONDS.
    """
    if seconds is None:
        return float(settings.DEFAULT_INVISIBLE_SECONDS)
    require_between("invisible_seconds", seconds, settings.MIN_INVISIBLE_SECONDS, settings.MAX_INVISIBLE_SECONDS)
    return seconds


@dataclass(frozen=True, slots=True)
class Settlement:
    """Handles of one group that a request settles in one way; seconds and reason of a nack, seconds of an extension."""

    handles: list[Handle]
    delay_seconds: float | None = None
    invisible_seconds: float = 0
    reason: str | None = None


async def ack(group_name: str, given: list[str]) -> list[Refusal | None]:
    """Acks deliveries: each is done for the group. In the order given: None, or ReceiptExpired.

    What the pipelined batch does not find is looked for again: a delivery that was extended at that moment was not in
    its snapshot. Raises GroupNotExist, or MessageIllegal for no or too many handles.
    """
    group, unpacked = await _unpacked(group_name, given)
    handles = {one for one in unpacked if one is not None}
    settled = (await writer.write(Acking(handles)) or set()) if handles else set()
    if handles - settled:
        settled |= await writer.submit(ACKS, Settlement(sorted(handles - settled)), urgent=True)
    return _outcomes(group, given, unpacked, settled)


class Acking(Request[set[Handle]]):
    """Deliveries of one request that are to be acked in a pipelined batch."""

    __slots__ = ("handles",)
    LANE = "acks"

    def __init__(self, handles: Set[Handle]) -> None:
        super().__init__(PACKED.pack(*min(handles)), len(handles) * HANDLE_BYTES)
        self.handles = handles

    @classmethod
    def calls(cls, requests: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        handles = cls._sorted(requests)
        group_ids, topic_ids, queue_ids, queue_offsets, nonces = zip(*handles, strict=True)
        columns = {
            "group_id": arrays.int4s(group_ids),
            "topic_id": arrays.int4s(topic_ids),
            "queue_id": arrays.int4s(queue_ids),
            "queue_offset": arrays.int8s(queue_offsets),
            "nonce": arrays.int8s(nonces),
        }
        return [Call(ACK_RECEIPTS, columns)]

    @classmethod
    def settle(cls, requests: Sequence[Self], results: Results) -> None:
        handles, found = cls._sorted(requests), results[ACK_RECEIPTS]
        numbers = (int.from_bytes(found.get_value(row, 0) or b"") for row in range(found.ntuples))
        settled = {handles[number - 1] for number in numbers}
        for request in requests:
            request.answer = settled.intersection(request.handles)

    @staticmethod
    def _sorted(requests: Sequence["Acking"]) -> list[Handle]:
        """So that two batches lock rows in the same order."""
        return sorted({handle for request in requests for handle in request.handles})


async def nack(
    group_name: str, given: list[str], delay_seconds: float | None, reason: str | None = None
) -> list[Refusal | None]:
    """Gives deliveries back: each is offered again after the group's retry delay, or after `delay_seconds`.

    The reason, of at most nacks.MAX_REASON characters, is kept with the message's trace and its dead letter. In the
    order given: None, or ReceiptExpired. Raises GroupNotExist or MessageIllegal."""
    if delay_seconds is not None:
        require_between("delay_seconds", delay_seconds, 0, settings.MAX_TIMER_DELAY_SECONDS)
    kept_reason = nacks.validate(reason)
    group, handles = await _unpacked(group_name, given)
    return await _settle(NACKS, group, given, handles, delay_seconds=delay_seconds, reason=kept_reason)


async def extend(group_name: str, given: list[str], invisible_seconds: float | None) -> list[Refusal | None]:
    """Gives deliveries more time: `invisible_seconds` from now on. The handles stay the same.

    In the order given: None, or ReceiptExpired. Raises GroupNotExist or MessageIllegal.
    """
    seconds = invisible_time(invisible_seconds)
    group, handles = await _unpacked(group_name, given)
    return await _settle(EXTENSIONS, group, given, handles, invisible_seconds=seconds)


async def _unpacked(group_name: str, given: list[str]) -> tuple[GroupFacts, list[Handle | None]]:
    """The group, and what each handle holds; None for one of another group or of no broker."""
    group = await groups.existing(group_name)
    if not 1 <= len(given) <= MAX_HANDLES:
        raise MessageIllegal(f"receipt_handles has {len(given)} handles: give 1 to {MAX_HANDLES}.")
    return group, [found if (found := unpack(one)) and found.group_id == group.id else None for one in given]


async def _settle(
    kind: Kind[Settlement],
    group: GroupFacts,
    given: list[str],
    unpacked: list[Handle | None],
    delay_seconds: float | None = None,
    invisible_seconds: float = 0,
    reason: str | None = None,
) -> list[Refusal | None]:
    handles = [one for one in unpacked if one is not None]
    settlement = Settlement(handles, delay_seconds, invisible_seconds, reason)
    settled: Set[Handle] = await writer.submit(kind, settlement, urgent=True) if handles else set()
    return _outcomes(group, given, unpacked, settled)


def _outcomes(
    group: GroupFacts, given: list[str], unpacked: list[Handle | None], settled: Set[Handle]
) -> list[Refusal | None]:
    if group.ordered:
        # The queues have no delivery in flight any more.
        notifier.notify(Counter(one.topic_id for one in settled))
    return [None if one in settled else expired(text) for text, one in zip(given, unpacked, strict=True)]


def expired(given: str) -> ReceiptExpired:
    """The refusal of a handle that proves no delivery."""
    return ReceiptExpired(
        f"The receipt {given[:60]} is acked already, or its invisible time is over: "
        "a message that is not done comes again; ack within the invisible time, or extend it."
    )


async def _settled(
    batch: Batch, statement: Statement[SettledHandle], handles: Set[Handle], parameters: dict[str, object]
) -> set[Handle]:
    """The handles whose deliveries a statement settled.

    Run twice: a delivery that another process extended at this very moment may be missing from the first snapshot.
    """
    settled: set[Handle] = set()
    for _ in range(2):
        if left := sorted(handles - settled):
            rows = await batch.read(statement, parameters | columns(left))
            settled.update(left[row.number - 1] for row in rows)
    return settled


async def _failed(
    batch: Batch, statement: Statement[FailedReceipt], handles: Set[Handle]
) -> dict[Handle, FailedReceipt]:
    """The receipts that a statement deletes or locks, by their handles. Run twice, as in `_settled`."""
    failed: dict[Handle, FailedReceipt] = {}
    for _ in range(2):
        if left := handles - failed.keys():
            failed |= {_handle_of(row): row for row in await batch.read(statement, columns(left))}
    return failed


def _handle_of(row: FailedReceipt) -> Handle:
    return Handle(row.group_id, row.topic_id, row.queue_id, row.queue_offset, row.nonce)


class Acks(Kind[Settlement]):
    """Acks that a pipelined batch did not find: one delete for all of them."""

    lane = "acks"

    async def decide(self, batch: Batch, pending: list[Pending[Settlement]]) -> None:
        acked = await _settled(batch, ACK_RECEIPTS, {handle for one in pending for handle in one.request.handles}, {})
        for one in pending:
            one.outcome = acked.intersection(one.request.handles)


class Nacks(Kind[Settlement]):
    """Nacks are written in a batch: one delete takes the receipts, and their messages are published again.

    Those of ordered groups are held in their queues until their retry, or become dead letters.
    """

    async def decide(self, batch: Batch, pending: list[Pending[Settlement]]) -> None:
        given = {handle: one.request for one in pending for handle in one.request.handles}
        held = await groups.hold(batch, {handle.group_id for handle in given})
        in_order = {handle for handle in given if handle.group_id in held and held[handle.group_id].ordered}
        taken = await _failed(batch, TAKE_RECEIPTS, given.keys() - in_order)
        locked = await _failed(batch, LOCK_RECEIPTS, in_order)
        for handle, receipt in (taken | locked).items():
            nacks.keep(batch, receipt, given[handle].reason)
            if handle in taken:
                await publish(batch, await redelivery.retry(receipt, given[handle].delay_seconds))
            else:
                await ordered.hold(batch, receipt, given[handle].delay_seconds)
        for one in pending:
            one.outcome = (taken.keys() | locked.keys()) & set(one.request.handles)


class Extensions(Kind[Settlement]):
    """Each extension is one update: they are rare."""

    lane = "acks"

    async def decide(self, batch: Batch, pending: list[Pending[Settlement]]) -> None:
        for one in pending:
            parameters: dict[str, object] = {"invisible_seconds": one.request.invisible_seconds}
            one.outcome = await _settled(batch, EXTEND_RECEIPTS, set(one.request.handles), parameters)


ACKS = Acks()
NACKS = Nacks()
EXTENSIONS = Extensions()
