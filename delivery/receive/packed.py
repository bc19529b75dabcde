"""What a batch hands out, as its statement answers it: packed, one row for all of its receives."""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from delivery.receive.deliveries import HandedOut
from store.db.statements import Statement
from store.queues import Queue

# Receive, queue, queue offset, segment, log offset, retries, bytes of the body; receive and queue count from 1.
HANDED = struct.Struct("!iiqiqii")
# Bodies that are read with a batch; a receive reads the others by itself, in steps.
MAX_READ_BYTES = 1024 * 1024
NUMBER = struct.Struct("!i")


class HandedEntries(NamedTuple):
    """What a batch hands out, packed: the readings that were not left out, those that were cut, and the entries."""

    readings: bytes | None
    cut: bytes | None
    handed: bytes | None
    moved: bool
    named: bool


HAND_OUT = Statement(__file__, "hand_out", HandedEntries)


def entries(nonces: Sequence[int], queues: Sequence[Queue], packed: bytes) -> list[list[HandedOut]]:
    """What each receive is handed, in its order; the receives by their nonces."""
    found: list[list[HandedOut]] = [[] for _ in nonces]
    for number, queue, queue_offset, segment_id, log_offset, retries, body_bytes in HANDED.iter_unpack(packed):
        handed = HandedOut(
            segment_id=segment_id,
            log_offset=log_offset,
            body_bytes=body_bytes,
            queue=queues[queue - 1],
            queue_offset=queue_offset,
            nonce=nonces[number - 1],
            reconsume_times=retries,
        )
        found[number - 1].append(handed)
    return found


def numbers(packed: bytes | None) -> Iterator[int]:
    """The numbers of readings."""
    return (number for (number,) in NUMBER.iter_unpack(packed or b""))
