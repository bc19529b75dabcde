"""Bundles: deliveries of one receive in one row. A change that does not concern a whole bundle first gives its delivery
a receipt.

A bundle covers 64 neighbouring places of a queue, from a multiple of 64 on, and has a bit for each place. The nonces of
its deliveries are marked, so their handles lead to the bundle.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from delivery.receipts.handles import Handle, unpack_all
from delivery.retries.nonces import BUNDLED
from store.commit.batch import Batch
from store.db import arrays
from store.db.statements import Statement

# Places of a bundle: the bits of a bigint.
PLACES = 64
ALL_BITS = (1 << PLACES) - 1
# The bounds of PostgreSQL's bigint: the column of a bundle's bits.
WIDE = ("first_offset", "nonce", "places")
# The most bundles that one transaction takes apart, into at most 2,048 receipts.
MAX_BUNDLES = 32


class BundleKey(NamedTuple):
    """The values that identify a bundle's row."""

    group_id: int
    topic_id: int
    queue_id: int
    first_offset: int
    nonce: int


class AckedPlaces(NamedTuple):
    """The acked places of a bundle, as bits. `number`: the bundle's position in the arrays, from 1 on."""

    number: int
    places: int


ACK_BUNDLES = Statement(__file__, "ack_bundles", AckedPlaces)
LOCK_BUNDLES = Statement(__file__, "lock_bundles", one=int)
TAKE_APART = Statement(__file__, "take_apart")


def bundled(handles: Iterable[Handle]) -> list[Handle]:
    """The handles of deliveries that were handed out in bundles. Some of these deliveries may have receipts by now."""
    return [one for one in handles if one.nonce & BUNDLED]


class Handles(Set[Handle]):
    """The handles of a request: for each bundle the places of its deliveries, as bits, and the handles that lead to
    receipts. This set makes a handle only when the handle is read.
    """

    __slots__ = ("_made", "apart", "places")

    def __init__(self, places: dict[BundleKey, int], apart: set[Handle]) -> None:
        self.places = places
        self.apart = apart
        self._made: frozenset[Handle] | None = None

    @classmethod
    def _from_iterable(cls, handles: Iterable[Handle]) -> Set[Handle]:  # type: ignore[override]  # typeshed: another set of the same class
        return frozenset(handles)

    @property
    def _all(self) -> frozenset[Handle]:
        if self._made is None:
            bundled = (one for key, places in self.places.items() for one in handles_at(key, places))
            self._made = frozenset((*bundled, *self.apart))
        return self._made

    def __contains__(self, handle: object) -> bool:
        return handle in self._all

    def __iter__(self) -> Iterator[Handle]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __bool__(self) -> bool:
        return bool(self.places or self.apart)

    @property
    def first(self) -> Handle:
        """The handle with the lowest bundle and place; without bundles the lowest of the other handles."""
        if not self.places:
            return min(self.apart)
        key = min(self.places)
        return next(iter(handles_at(key, self.places[key])))


def read(group_id: int, given: Iterable[str]) -> tuple[Handles, bool]:
    """The handles of a request that belong to the group, and whether every text of the request was such a handle."""
    places: defaultdict[BundleKey, int] = defaultdict(int)
    apart: set[Handle] = set()
    is_whole = True
    for found in unpack_all(given):
        if found is None or found[0].group_id != group_id:
            is_whole = False
            continue
        one, more = found
        if one.nonce & BUNDLED:
            for block, bits in _blocks(one.queue_offset, more).items():
                places[BundleKey(group_id, one.topic_id, one.queue_id, block * PLACES, one.nonce)] |= bits
        else:
            apart.update(one._replace(queue_offset=one.queue_offset + number) for number in more)
    return Handles(places, apart), is_whole


def _blocks(start: int, numbers: Iterable[int]) -> dict[int, int]:
    """Queue offsets, counted from `start`, as bits: for each block of 64 offsets (the key) the offsets in it."""
    found: dict[int, int] = {}
    for number in numbers:
        offset = start + number
        block = offset >> 6
        found[block] = found.get(block, 0) | 1 << (offset & 63)
    return found


def places_of(handles: Iterable[Handle]) -> dict[BundleKey, int]:
    """The bundles of deliveries, with a bit for the place of each delivery."""
    found: defaultdict[BundleKey, int] = defaultdict(int)
    for group_id, topic_id, queue_id, queue_offset, nonce in handles:
        place = queue_offset % PLACES
        found[BundleKey(group_id, topic_id, queue_id, queue_offset - place, nonce)] |= 1 << place
    return found


def joined(all_places: Iterable[Mapping[BundleKey, int]]) -> dict[BundleKey, int]:
    """The union of the places of several requests, by bundle."""
    found: defaultdict[BundleKey, int] = defaultdict(int)
    for places in all_places:
        for key, bits in places.items():
            found[key] |= bits
    return found


def signed(places: int) -> int:
    """The places of a bundle as PostgreSQL's bigint."""
    return places - (1 << PLACES) if places >> PLACES - 1 > 0 else places


def columns(places: Mapping[BundleKey, int]) -> dict[str, list[int]]:
    """The parameters of a statement that takes places of bundles, sorted, so that two statements lock rows in the same
    order.
    """
    by_column = zip(*((*key, signed(places[key])) for key in sorted(places)), strict=True)
    return dict(zip((*BundleKey._fields, "places"), map(list, by_column), strict=True))


def acked_of(places: Mapping[BundleKey, int], rows: Iterable[AckedPlaces]) -> dict[BundleKey, int]:
    """The places of bundles that ACK_BUNDLES has acked, from its rows."""
    keys, found = sorted(places), defaultdict[BundleKey, int](int)
    for row in rows:
        found[keys[row.number - 1]] |= row.places & ALL_BITS
    return found


def packed(places: Mapping[BundleKey, int]) -> dict[str, bytes]:
    """The parameters of a pipelined statement that takes places of bundles."""
    rows = [(*key, signed(places[key])) for key in sorted(places)]
    return arrays.int4_columns((*BundleKey._fields, "places"), rows, WIDE)


def handles_at(key: BundleKey, places: int) -> Iterator[Handle]:
    """The handles of the deliveries at these places of a bundle, the lowest first."""
    group_id, topic_id, queue_id, first_offset, nonce = key
    while places:
        lowest = places & -places
        places ^= lowest
        yield Handle(group_id, topic_id, queue_id, first_offset + lowest.bit_length() - 1, nonce)


async def take_apart(batch: Batch, handles: Iterable[Handle]) -> None:
    """Replaces places in bundles by receipts: each of these deliveries that is in a bundle gets a receipt."""
    if places := places_of(bundled(handles)):
        wanted = columns(places)
        if await batch.read(LOCK_BUNDLES, wanted):
            await batch.read(TAKE_APART, wanted)


async def take_all_apart(batch: Batch, keys: Sequence[BundleKey]) -> None:
    """Replaces places by receipts, in bundles that the batch has already locked."""
    if keys:
        await batch.read(TAKE_APART, columns(dict.fromkeys(keys, ALL_BITS)))


async def ack(batch: Batch, handles: Collection[Handle]) -> set[Handle]:
    """Acks deliveries that were handed out in bundles; returns the handles that proved a delivery.

    The bundles are locked first: so no delivery is missed if another consumer acks another delivery of the bundle. A
    delivery that has left its bundle may still be missed.
    """
    if not (places := places_of(handles)):
        return set()
    wanted = columns(places)
    await batch.read(LOCK_BUNDLES, wanted)
    acked = acked_of(places, await batch.read(ACK_BUNDLES, wanted))
    return {handle for key, bits in acked.items() for handle in handles_at(key, bits)}
