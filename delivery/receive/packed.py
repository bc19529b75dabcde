"""The packed answer of the statements that hand out entries: one row for all receives of a batch."""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from delivery.receive.deliveries import HandedOut
from delivery.retries.nonces import BUNDLED
from store.db.statements import Statement
from store.queues import Queue

# Receive and queue (numbers from 1), queue offset, segment, log offset, retries, bytes of the body, and whether the
# delivery may lie in a bundle.
HANDED = struct.Struct("!iiqiqii?")
# The most bytes of bodies that a batch reads for all its receives. Each receive reads its other bodies by itself.
MAX_READ_BYTES = 1024 * 1024
NUMBER = struct.Struct("!i")


class HandedEntries(NamedTuple):
    """A batch's handed out entries, packed.

    `readings`: the readings that were written; `cut`: readings that may have more entries.
    """

    readings: bytes | None
    cut: bytes | None
    handed: bytes | None
    moved: bool
    named: bool


HAND_OUT = Statement(__file__, "hand_out", HandedEntries)


def entries(nonces: Sequence[int], queues: Sequence[Queue], packed: bytes | None) -> list[list[HandedOut]]:
    """Unpacks the entries that were handed out: one list for each receive, in the order of the receives' nonces."""
    found: list[list[HandedOut]] = [[] for _ in nonces]
    for entry in HANDED.iter_unpack(packed or b""):
        number, queue, queue_offset, segment_id, log_offset, retries, body_bytes, is_marked = entry
        handed = HandedOut(
            segment_id=segment_id,
            log_offset=log_offset,
            body_bytes=body_bytes,
            queue=queues[queue - 1],
            queue_offset=queue_offset,
            nonce=nonces[number - 1] | BUNDLED if is_marked else nonces[number - 1],
            reconsume_times=retries,
        )
        found[number - 1].append(handed)
    return found


def numbers(packed: bytes | None) -> Iterator[int]:
    """The numbers of readings in a packed column."""
    return (number for (number,) in NUMBER.iter_unpack(packed or b""))
