"""Receipt handles: what proves a delivery, opaque to its consumer."""

import base64
import struct
from collections.abc import Iterable
from typing import NamedTuple

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
