"""Receipts: the proof of a delivery, and how its consumer settles it: by an ack, or later by more time for it."""

from collections.abc import Iterable, Sequence, Set
from functools import partial
from typing import Self

from django.conf import settings

from access.callers import Caller
from delivery import groups
from delivery.receipts import elsewhere
from delivery.receipts.elsewhere import ACK_RECEIPTS, settled
from delivery.receipts.given import ack, outcomes, settle, unpacked, wake
from delivery.receipts.handles import PACKED, Handle, by_cell
from delivery.rows import GroupFacts, SettledHandle
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db import arrays
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.errors import Refusal, TopicMoved, require_between
from store.process import runtime
from store.process.runtime import CONTROL

EXTEND_RECEIPTS = Statement(__file__, "extend_receipts", SettledHandle)

# What a handle adds to a batch.
HANDLE_BYTES = 64


def invisible_time(seconds: float | None, least: float | None = None) -> float:
    """The invisible time of a delivery in seconds; None: DEFAULT_INVISIBLE_SECONDS.

    Raises MessageIllegal outside `least`, or else MIN_INVISIBLE_SECONDS, to MAX_INVISIBLE_SECONDS.
    """
    if seconds is None:
        return float(settings.DEFAULT_INVISIBLE_SECONDS)
    shortest = settings.MIN_INVISIBLE_SECONDS if least is None else least
    require_between("invisible_seconds", seconds, shortest, settings.MAX_INVISIBLE_SECONDS)
    return seconds


async def extend(
    group_name: str, given: list[str], invisible_seconds: float | None, least_seconds: float | None = None
) -> list[Refusal | None]:
    """Gives deliveries more time: `invisible_seconds` from now on. The handles stay the same.

    `least_seconds` is the shortest time that may be asked for; None: MIN_INVISIBLE_SECONDS. With 0 s a delivery is over
    at once. In the order given: None, or ReceiptExpired. Raises GroupNotExist or MessageIllegal.
    """
    seconds = invisible_time(invisible_seconds, least_seconds)
    group = await groups.existing(group_name)
    return await settle(group, given, lambda handles: Extension(handles, seconds))


class Ack(Operation[Set[Handle]]):
    """Acks deliveries: each is done for the group. POST /v1/consumer-groups/{group}/ack, and `ack` of a bulk.

    The result: the handles that proved a delivery. Raises GroupNotExist, or MessageIllegal for no or too many handles.

    Pipelined it is one delete. What that does not find is looked for again, stepwise: a delivery that was extended at
    that moment was not in its snapshot.
    """

    __slots__ = ("away", "caller", "found", "given", "group", "group_name", "handles", "is_late", "unpacked")
    LANE = "acks"
    URGENT = True

    def __init__(self, group_name: str, given: list[str], caller: Caller | None = None) -> None:
        super().__init__()
        self.group_name = group_name
        self.given = given
        self.caller = caller
        # Once it is complete:
        self.group: GroupFacts
        self.unpacked: list[Handle | None] = []
        self.handles: Set[Handle] = frozenset()
        # What the pipelined batch has deleted, where it is not all.
        self.found: Set[Handle] = frozenset()
        # Whether those of topics that have left the cell were acked elsewhere.
        self.is_late = False
        # The refusals of cells that are away, by the handles of their deliveries.
        self.away: dict[str, Refusal] = {}

    def ready(self) -> bool:
        """Whether this process knows the group."""
        if self.caller is not None:
            self.caller.require("consume", self.group_name)
        group = groups.known(self.group_name)
        if group is None or not self._is_of_one_cell():
            return False
        self._prepare(group)
        return self.is_plain

    async def complete(self) -> None:
        group = await groups.existing(self.group_name)
        self._prepare(group)
        if not self._is_of_one_cell():
            parts = list(by_cell(self.given).values())
            self.result, self.away = await ack([Ack(self.group_name, part) for part in parts], parts)

    def _prepare(self, group: GroupFacts) -> None:
        self.group = group
        self.unpacked = unpacked(group, self.given)
        self.handles = {one for one in self.unpacked if one is not None}
        self.is_plain = bool(self.handles)
        if self.handles:
            self.key = PACKED.pack(*min(self.handles))
            self.ids = (self.key,)
            self.size = len(self.handles) * HANDLE_BYTES
        else:
            self.result = frozenset()

    def _is_of_one_cell(self) -> bool:
        """Whether its deliveries lie in one cell, which it is for then."""
        if not runtime.several:
            return True
        self.cell, *others = by_cell(self.given) or (CONTROL,)
        return not others

    def outcomes(self) -> list[Refusal | None]:
        """In the order given: None, or ReceiptExpired."""
        return outcomes(self.given, self.unpacked, self.result or frozenset(), self.away)

    @classmethod
    def statements(cls, operations: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        group_ids, topic_ids, queue_ids, queue_offsets, nonces = zip(*cls._sorted(operations), strict=True)
        parameters = {
            "group_id": arrays.int4s(group_ids),
            "topic_id": arrays.int4s(topic_ids),
            "queue_id": arrays.int4s(queue_ids),
            "queue_offset": arrays.int8s(queue_offsets),
            "nonce": arrays.int8s(nonces),
        }
        return [Call(ACK_RECEIPTS, parameters)]

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        handles, rows = cls._sorted(operations), results[ACK_RECEIPTS]
        numbers = (int.from_bytes(rows.get_value(row, 0) or b"") for row in range(rows.ntuples))
        settled = {handles[number - 1] for number in numbers}
        for one in operations:
            # A batch is sent again for what it left out, and finds the deliveries of the first time no more.
            one.found = one.found | settled.intersection(one.handles)
            if len(one.found) == len(one.handles):
                one.result = one.found
                wake(one.group, one.found)

    @staticmethod
    def _sorted(operations: Sequence["Ack"]) -> list[Handle]:
        """So that two batches lock rows in the same order."""
        return sorted({handle for one in operations for handle in one.handles})

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        left = {handle for one in operations for handle in one.handles - one.found}
        acked = await settled(batch, ACK_RECEIPTS, left, {})
        for one in operations:
            done = one.result = one.found | acked.intersection(one.handles)
            batch.after_commit(partial(wake, one.group, done))
            if not one.is_late and elsewhere.have_left(one.cell, one.handles - done):
                one.found = done
                one.refusal = TopicMoved("The topic of a delivery has left its cell: try again in a second.")

    async def renew(self, refusal: Refusal) -> bool:
        """Deliveries of topics that have left the cell are acked where these lie now, once."""
        if not isinstance(refusal, TopicMoved) or self.is_late:
            return False
        self.is_late = True
        left = {handle for handle in self.handles - self.found if elsewhere.have_left(self.cell, {handle})}
        self.found = self.found | await elsewhere.settle(self.cell, left, elsewhere.LateAck)
        return True


class Extension(Operation[Set[Handle]]):
    """More time for deliveries of one group. Each extension is one update: they are rare."""

    __slots__ = ("handles", "invisible_seconds")
    LANE = "acks"
    URGENT = True

    def __init__(self, handles: Set[Handle], invisible_seconds: float) -> None:
        super().__init__()
        self.handles = handles
        self.invisible_seconds = invisible_seconds

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            parameters: dict[str, object] = {"invisible_seconds": one.invisible_seconds}
            one.result = await settled(batch, EXTEND_RECEIPTS, one.handles, parameters)
