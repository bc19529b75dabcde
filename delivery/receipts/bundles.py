"""Bundles: deliveries of one receive in one row. What does not concern a whole bundle gives a delivery a receipt first.

A bundle covers 64 neighbouring places of a queue, from a multiple of 64 on, and has a bit for each place. The nonces of
its deliveries are marked, so their handles lead to the bundle.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from delivery.receipts.handles import Handle
from delivery.retries.nonces import BUNDLED
from store.commit.batch import Batch
from store.db import arrays
from store.db.statements import Statement

# Places of a bundle: the bits of a bigint.
PLACES = 64
ALL_PLACES = -1
# Bundles that one transaction takes apart: at most 2,048 receipts.
MAX_BUNDLES = 32


class BundleKey(NamedTuple):
    """The key of a bundle's row."""

    group_id: int
    topic_id: int
    queue_id: int
    first_offset: int
    nonce: int


class AckedPlaces(NamedTuple):
    """Places of a bundle that were acked, as bits; `number`, from 1, is the bundle's place in the parameters' arrays."""

    number: int
    places: int


class LockedBundle(NamedTuple):
    """The number, from 1, in the parameters' arrays of a bundle that is locked."""

    number: int


ACK_BUNDLES = Statement(__file__, "ack_bundles", AckedPlaces)
LOCK_BUNDLES = Statement(__file__, "lock_bundles", LockedBundle)
TAKE_APART = Statement(__file__, "take_apart")


def bundled(handles: Iterable[Handle]) -> list[Handle]:
    """The handles of deliveries that were handed out in bundles. Some may have receipts by now."""
    return [one for one in handles if one.nonce & BUNDLED]


def places_of(handles: Iterable[Handle]) -> dict[BundleKey, int]:
    """The bundles of deliveries, sorted by key, with a bit for the place of each delivery, as signed bigints."""
    found: dict[BundleKey, int] = {}
    for group_id, topic_id, queue_id, queue_offset, nonce in handles:
        place = queue_offset % PLACES
        key = BundleKey(group_id, topic_id, queue_id, queue_offset - place, nonce)
        found[key] = found.get(key, 0) | 1 << place
    return {key: _signed(found[key]) for key in sorted(found)}


def _signed(places: int) -> int:
    return places - (1 << PLACES) if places >> PLACES - 1 else places


def columns(places: Mapping[BundleKey, int]) -> dict[str, list[int]]:
    """The parameters of a statement that takes places of bundles."""
    by_column = zip(*((*key, bits) for key, bits in places.items()), strict=True)
    return dict(zip((*BundleKey._fields, "places"), map(list, by_column), strict=True))


def packed(places: Mapping[BundleKey, int]) -> dict[str, bytes]:
    """The parameters of a pipelined statement that takes places of bundles."""
    found = columns(places)
    narrow = ("group_id", "topic_id", "queue_id")
    return {name: (arrays.int4s if name in narrow else arrays.int8s)(values) for name, values in found.items()}


def handles_at(key: BundleKey, places: int) -> Iterable[Handle]:
    """The handles of the deliveries at these places of a bundle."""
    group_id, topic_id, queue_id, first_offset, nonce = key
    for place in range(PLACES):
        if places >> place & 1:
            yield Handle(group_id, topic_id, queue_id, first_offset + place, nonce)


async def take_apart(batch: Batch, handles: Iterable[Handle]) -> None:
    """Gives each of these deliveries that is in a bundle a receipt."""
    if places := places_of(bundled(handles)):
        wanted = columns(places)
        if await batch.read(LOCK_BUNDLES, wanted):
            await batch.read(TAKE_APART, wanted)


async def take_all_apart(batch: Batch, keys: Sequence[BundleKey]) -> None:
    """Gives each delivery of bundles that the batch has locked a receipt."""
    if keys:
        await batch.read(TAKE_APART, columns(dict.fromkeys(keys, ALL_PLACES)))


async def ack(batch: Batch, handles: Collection[Handle]) -> set[Handle]:
    """Acks deliveries that were handed out in bundles; returns the handles that proved a delivery.

    The bundles are locked first, so a delivery is not missed because another consumer has acked another one.
    """
    if not (places := places_of(handles)):
        return set()
    wanted, keys = columns(places), list(places)
    await batch.read(LOCK_BUNDLES, wanted)
    rows = await batch.read(ACK_BUNDLES, wanted)
    return {handle for row in rows for handle in handles_at(keys[row.number - 1], row.places)}
