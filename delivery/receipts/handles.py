"""Receipt handles: a handle proves a delivery, and is opaque to the consumer."""

import base64
import string
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from store.process import runtime
from store.process.runtime import CONTROL

# A handle of another cell than the control begins with the version of its form and the number of the cell. A handle of
# the control, or of an earlier version of the broker, has no such beginning.
CELL = struct.Struct(">BH")
VERSION = 1
# The widths match PostgreSQL's integer and bigint, so a forged handle cannot overflow a parameter.
PACKED = struct.Struct(">iiiqq")
WITH_CELL = CELL.size + PACKED.size
# Characters of a handle of the control: base64 without padding; and of a handle of another cell.
CHARACTERS = -(-PACKED.size * 4 // 3)
LENGTHS = (CHARACTERS, CHARACTERS + CELL.size * 4 // 3)
# A handle's own four characters, before its last ten, are the last two bytes of the queue offset and the first byte of
# the nonce. Neighbours are deliveries of one receive in one queue: they have the same other characters, which are made
# and read once for all.
OWN = struct.Struct(">Hx")
OWN_BITS = 16
LAST = 10
# The two characters for each number of 12 bits.
PAIRS = [
    "".join(pair) for pair in product(f"{string.ascii_uppercase}{string.ascii_lowercase}{string.digits}-_", repeat=2)
]
# The most neighbours whose common characters a process remembers.
MAX_COMMON = 4096


class Handle(NamedTuple):
    """The content of a receipt handle: the key of the receipt's row, and the nonce of this delivery."""

    group_id: int
    topic_id: int
    queue_id: int
    queue_offset: int
    nonce: int


def handle(group_id: int, topic_id: int, queue_id: int, queue_offset: int, nonce: int, cell: int = CONTROL) -> str:
    """A receipt handle of a delivery in a cell; opaque to consumers."""
    before, behind = _common(cell, group_id, topic_id, queue_id, queue_offset >> OWN_BITS, nonce)
    own = (queue_offset & 0xFFFF) << 8 | nonce >> 56
    return f"{before}{PAIRS[own >> 12]}{PAIRS[own & 0xFFF]}{behind}"


@lru_cache(MAX_COMMON)
def _common(cell: int, group_id: int, topic_id: int, queue_id: int, offset_above: int, nonce: int) -> tuple[str, str]:
    """The characters that neighbours' handles have in common: before each handle's own characters, and after them."""
    packed = PACKED.pack(group_id, topic_id, queue_id, offset_above << OWN_BITS, nonce)
    if cell:
        packed = CELL.pack(VERSION, cell) + packed
    text = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return text[: -LAST - 4], text[-LAST:]


def unpack(given: str) -> Handle | None:
    """The content of a handle; None for a text that no broker made."""
    try:
        packed = _decoded(given)
        if len(packed) == WITH_CELL and packed[0] == VERSION:
            packed = packed[CELL.size :]
        return Handle(*PACKED.unpack(packed))
    except (ValueError, struct.error):
        return None


def unpack_all(given: Iterable[str]) -> Iterator[tuple[Handle, Sequence[int]] | None]:
    """The content of handles: for neighbours the content of one handle, and for each handle the number to add to its
    queue offset. None for a text that no broker made.
    """
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for text in given:
        if len(text) in LENGTHS:
            alike[text[: -LAST - 4] + text[-LAST:]].append(text[-LAST - 4 : -LAST])
        else:
            alike[text].append("")
    for common, own in alike.items():
        if (places := _places(own)) and (first := _unpack_first(common, own[0])):
            yield first, places
        else:
            for one in (unpack(common[:-LAST] + text + common[-LAST:]) for text in own):
                yield None if one is None else (one, (0,))


def _unpack_first(common: str, own: str) -> Handle | None:
    """The content of the first of neighbours' handles, with a queue offset that lacks the last 16 bits."""
    first = unpack(f"{common[:-LAST]}{own}{common[-LAST:]}")
    return None if first is None else first._replace(queue_offset=first.queue_offset >> OWN_BITS << OWN_BITS)


def _places(own: Sequence[str]) -> list[int] | None:
    """The last 16 bits of neighbours' queue offsets. None if they are no neighbours, or a text has other characters."""
    try:
        packed = _decoded("".join(own))
    except ValueError:
        return None
    if len(packed) != len(own) * OWN.size or packed[2::3].count(packed[2]) != len(own):
        return None
    return [place for (place,) in OWN.iter_unpack(packed)]


def cell_of(given: str) -> int:
    """The cell of a handle's delivery; the control for a text that no broker made."""
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
