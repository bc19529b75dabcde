"""Receipt handles: a handle proves a delivery, and is opaque to the consumer."""

import base64
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from delivery.retries.nonces import BUNDLED
from store.process import runtime
from store.process.runtime import CONTROL

# A handle of another cell than the control begins with the version of its form and the number of the cell. A handle of
# the control has no such beginning, and neither has a handle that an earlier version of the broker made.
CELL = struct.Struct(">BH")
VERSION = 1
# The widths match PostgreSQL's integer and bigint, so a forged handle cannot overflow a parameter.
PACKED = struct.Struct(">iiiqq")
WITH_CELL = CELL.size + PACKED.size
# Characters of a handle of the control: base64 without padding.
CHARACTERS = -(-PACKED.size * 4 // 3)
# A handle of a delivery in a bundle: a head, which the bundle's deliveries share, a full stop, and the queue offset in
# decimal digits. So the head is made and read once for many deliveries.
HEAD = struct.Struct(">BHiiiqx")
HEAD_VERSION = 2
STOP = "."
# Of a queue offset; the largest bigint has one more.
MAX_DIGITS = 18
# Heads that a process remembers.
MAX_HEADS = 4096


class Handle(NamedTuple):
    """The content of a receipt handle: the key of the receipt's row, and the nonce of this delivery."""

    group_id: int
    topic_id: int
    queue_id: int
    queue_offset: int
    nonce: int


class Head(NamedTuple):
    """The content of a head: the cell, and what all deliveries of a bundle share."""

    cell: int
    group_id: int
    topic_id: int
    queue_id: int
    nonce: int


def handle(group_id: int, topic_id: int, queue_id: int, queue_offset: int, nonce: int, cell: int = CONTROL) -> str:
    """A receipt handle of a delivery in a cell; opaque to consumers."""
    if nonce & BUNDLED:
        return f"{_head(cell, group_id, topic_id, queue_id, nonce)}{STOP}{queue_offset}"
    packed = PACKED.pack(group_id, topic_id, queue_id, queue_offset, nonce)
    if cell:
        packed = CELL.pack(VERSION, cell) + packed
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


@lru_cache(MAX_HEADS)
def _head(cell: int, group_id: int, topic_id: int, queue_id: int, nonce: int) -> str:
    return base64.urlsafe_b64encode(HEAD.pack(HEAD_VERSION, cell, group_id, topic_id, queue_id, nonce)).decode()


@lru_cache(MAX_HEADS)
def read_head(characters: str) -> Head | None:
    """The content of the characters before the full stop; None if no broker made them."""
    try:
        version, *fields = HEAD.unpack(base64.urlsafe_b64decode(characters))
    except (ValueError, struct.error):
        return None
    head = Head(*fields)
    return head if version == HEAD_VERSION and _head(*head) == characters else None


def is_offset(digits: str) -> bool:
    """Whether a text is a queue offset, in decimal digits."""
    return digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS


def unpack(given: str) -> Handle | None:
    """The content of a handle; None for a text that no broker made."""
    characters, stop, digits = given.partition(STOP)
    if stop:
        if (head := read_head(characters)) is None or not is_offset(digits):
            return None
        return Handle(head.group_id, head.topic_id, head.queue_id, int(digits), head.nonce)
    try:
        packed = _decoded(given)
        if len(packed) == WITH_CELL and packed[0] == VERSION:
            packed = packed[CELL.size :]
        return Handle(*PACKED.unpack(packed))
    except (ValueError, struct.error):
        return None


def cell_of(given: str) -> int:
    """The cell of a handle's delivery; the control for a text that no broker made."""
    characters, stop, _ = given.partition(STOP)
    if stop:
        head = read_head(characters)
        return CONTROL if head is None else head.cell
    if len(given) == CHARACTERS:
        return CONTROL
    try:
        packed = _decoded(given)
        version, cell = CELL.unpack_from(packed)
    except (ValueError, struct.error):
        return CONTROL
    return int(cell) if version == VERSION and len(packed) == WITH_CELL else CONTROL


def by_cell(given: Iterable[str]) -> dict[int, list[str]]:
    """The handles by the cell of their delivery. The handles of one cell keep their order."""
    return runtime.placement.of_handles(given, cell_of)


def _decoded(given: str) -> bytes:
    return base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))


def columns(handles: Iterable[Handle]) -> dict[str, object]:
    """The parameters of a statement that takes handles, sorted, so that two statements lock rows in the same order."""
    ordered_handles = sorted(handles)
    return {name: [getattr(one, name) for one in ordered_handles] for name in Handle._fields}
