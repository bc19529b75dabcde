"""Settling: a consumer acks its deliveries, or extends their invisible time."""

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Self

from django.conf import settings

from access.callers import Caller
from delivery import groups
from delivery.receipts import bundles, elsewhere
from delivery.receipts.bundles import ACK_BUNDLES, BundleKey
from delivery.receipts.elsewhere import ACK_RECEIPTS, acked, settled
from delivery.receipts.given import ack, outcomes, require_count, settle, unpacked, wake
from delivery.receipts.handles import PACKED, Handle, by_cell
from delivery.rows import GroupFacts, SettledHandle
from store.commit.batch import Batch
from store.commit.operation import Operation, Pipelined
from store.db import arrays, pipeline
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.errors import Refusal, TopicMoved, require_between
from store.process import runtime
from store.process.runtime import CONTROL

EXTEND_RECEIPTS = Statement(__file__, "extend_receipts", SettledHandle)

# Bytes that a handle adds to the size of a batch.
HANDLE_BYTES = 64


def invisible_time(seconds: float | None, least: float | None = None) -> float:
    """The invisible time of a delivery in seconds; None: DEFAULT_INVISIBLE_SECONDS.

    Raises MessageIllegal below `least` (None: MIN_INVISIBLE_SECONDS) or above MAX_INVISIBLE_SECONDS.
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
    at once. Returns, in the order given, None or ReceiptExpired. Raises GroupNotExist or MessageIllegal.
    """
    seconds = invisible_time(invisible_seconds, least_seconds)
    group = await groups.existing(group_name)
    return await settle(group, given, lambda handles: Extension(handles, seconds))


class Ack(Pipelined[Set[Handle]]):
    """Acks deliveries: each is done for the group. POST /v1/consumer-groups/{group}/ack, and `ack` of a bulk.

    The result is the set of handles that proved a delivery. Raises GroupNotExist, or MessageIllegal for no or too many
    handles.

    A pipelined batch acks by one delete. The stepwise writer looks again for the handles that the delete did not find:
    its snapshot misses a delivery that was extended at that moment.
    """

    __slots__ = ("away", "caller", "found", "given", "group", "group_name", "handles", "is_late", "is_whole")
    LANE = "acks"
    URGENT = True

    def __init__(self, group_name: str, given: list[str], caller: Caller | None = None) -> None:
        super().__init__()
        self.group_name = group_name
        self.given = given
        self.caller = caller
        # `complete` sets these:
        self.group: GroupFacts
        self.handles = bundles.Handles({}, set())
        # Whether each given text is a handle of the group.
        self.is_whole = False
        # The handles whose rows earlier attempts of the pipelined batch have deleted; other handles were not found yet.
        self.found: Set[Handle] = frozenset()
        # Whether deliveries of topics that have left this cell were already acked in the new cells of the topics.
        self.is_late = False
        # The refusals of cells that are away, by given handle.
        self.away: dict[str, Refusal] = {}

    def ready(self) -> bool:
        """Whether this process knows the group."""
        if self.caller is not None:
            self.caller.require("consume", self.group_name)
        group = groups.known(self.group_name)
        if group is None or not runtime.placement.choose(self):
            return False
        self._prepare(group)
        return self.is_plain

    async def complete(self) -> None:
        group = await groups.existing(self.group_name)
        self._prepare(group)
        if not runtime.placement.choose(self):
            parts = list(by_cell(self.given).values())
            self.result, self.away = await ack([Ack(self.group_name, part) for part in parts], parts)

    def _prepare(self, group: GroupFacts) -> None:
        self.group = group
        require_count(self.given)
        self.handles, self.is_whole = bundles.read(group.id, self.given)
        self.is_plain = bool(self.handles)
        if self.handles:
            self.key = PACKED.pack(*self.handles.first)
            self.ids = (self.key,)
            self.size = len(self.given) * HANDLE_BYTES
        else:
            self.result = frozenset()

    def choose_cell(self) -> bool:
        """Sets the cell of the deliveries. Returns False if they lie in several cells."""
        self.cell, *others = by_cell(self.given) or (CONTROL,)
        return not others

    def outcomes(self) -> list[Refusal | None]:
        """The outcome of each handle, in the order given: None, or the refusal."""
        if self.is_whole and self.result is self.handles:
            return [None] * len(self.given)
        return outcomes(self.given, unpacked(self.group, self.given), self.result or frozenset(), self.away)

    @classmethod
    def statements(cls, operations: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        places, apart = cls._wanted(operations)
        calls = [Call(ACK_BUNDLES, bundles.packed(places))] if places else []
        if apart:
            parameters = arrays.int4_columns(Handle._fields, apart, wide=("queue_offset", "nonce"))
            calls.append(Call(ACK_RECEIPTS, parameters))
        return calls

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        places, apart = cls._wanted(operations)
        acked_places = bundles.acked_of(places, pipeline.rows(results, ACK_BUNDLES))
        settled = {apart[row.number - 1] for row in pipeline.rows(results, ACK_RECEIPTS)}
        for one in operations:
            if one._is_done(acked_places, settled):
                one.result = one.handles
            else:
                # A repeated batch does not find the rows that its first attempt has deleted: add up both results.
                one.found = one.found | (bundles.Handles(acked_places, settled) & one.handles)
                if len(one.found) == len(one.handles):
                    one.result = one.found
            if one.result is not None:
                wake(one.group, one.result)

    def _is_done(self, acked_places: Mapping[BundleKey, int], settled: set[Handle]) -> bool:
        """Whether a batch has acked all deliveries."""
        is_acked = all(bits & ~acked_places.get(key, 0) == 0 for key, bits in self.handles.places.items())
        return is_acked and self.handles.apart <= settled

    @staticmethod
    def _wanted(operations: Sequence["Ack"]) -> tuple[dict[BundleKey, int], list[Handle]]:
        """The places of bundles, and handles of receipts, sorted, so that two batches lock rows in the same order."""
        places = bundles.joined(one.handles.places for one in operations)
        return places, sorted({handle for one in operations for handle in one.handles.apart})

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        left = {handle for one in operations for handle in one.handles - one.found}
        found = await acked(batch, left)
        for one in operations:
            done = one.result = one.found | found.intersection(one.handles)
            batch.after_commit(partial(wake, one.group, done))
            if not one.is_late and elsewhere.have_left(one.cell, one.handles - done):
                one.found = done
                one.refusal = TopicMoved("The topic of a delivery has moved to another cell: try again in a second.")

    async def renew(self, refusal: Refusal) -> bool:
        """Acks deliveries of topics that have left the cell: in the topics' new cells, once."""
        if not isinstance(refusal, TopicMoved) or self.is_late:
            return False
        self.is_late = True
        left = {handle for handle in self.handles - self.found if elsewhere.have_left(self.cell, {handle})}
        self.found = self.found | await elsewhere.settle(self.cell, left, elsewhere.LateAck)
        return True


class Extension(Operation[Set[Handle]]):
    """Extends the invisible time of deliveries of one group. Each extension is one update, because they are rare."""

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
