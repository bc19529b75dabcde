"""Receipt handles: a handle proves a delivery, and is opaque to the consumer."""

import base64
import struct
from collections.abc import Iterable
from typing import NamedTuple

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


class Handle(NamedTuple):
    """The content of a receipt handle: the key of the receipt's row, and the nonce of this delivery."""

    group_id: int
    topic_id: int
    queue_id: int
    queue_offset: int
    nonce: int


def handle(group_id: int, topic_id: int, queue_id: int, queue_offset: int, nonce: int, cell: int = CONTROL) -> str:
    """A receipt handle of a delivery in a cell; opaque to consumers."""
    packed = PACKED.pack(group_id, topic_id, queue_id, queue_offset, nonce)
    if cell:
        packed = CELL.pack(VERSION, cell) + packed
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def unpack(given: str) -> Handle | None:
    """The content of a handle; None for a text that no broker made."""
    try:
        packed = _decoded(given)
        if len(packed) == WITH_CELL and packed[0] == VERSION:
            packed = packed[CELL.size :]
        return Handle(*PACKED.unpack(packed))
    except (ValueError, struct.error):
        return None


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
