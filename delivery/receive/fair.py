"""Receives of a group whose keys take turns (`turns`), in a pipelined batch: they read entries ahead, then hand out
waiting entries.

A group takes turns if it is fair or has limits.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self, cast

from delivery.limits import keys
from delivery.limits.bounds import SLOT_SECONDS
from delivery.receive import packed
from delivery.receive.deliveries import Handout, Receiver
from delivery.receive.handout import Reading, Receiving, are_short, columns_of, columns_of_queues, readings_of
from delivery.receive.turns import (
    HAND_OUT_BY_TURNS,
    LOOK_ON_SECONDS,
    MAX_LOOKED,
    MAX_OFFSETS,
    MAX_READ_AHEAD,
    READ_AHEAD,
    Turns,
)
from store.db import arrays, pipeline
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.process import runtime
from store.reading.progress import RECORD_MOVES
from store.segments import log


class ChosenAhead(NamedTuple):
    """How many entries to read ahead for each reading, packed. Other columns say that the registers were set."""

    entries: bytes | None
    named: bool
    chosen: bool
    moved: bool


CHOOSE_AHEAD = Statement(__file__, "choose_ahead", ChosenAhead)
# A reading's number, and the number of entries that are read ahead.
ENTRIES = struct.Struct("!ii")


class FairReceiving(Receiving):
    """Hands out entries to a receive of a group whose keys take turns: like `Receiving`, but in four steps.

    1. `choose_ahead` chooses the entries that are read ahead.
    2. `read_ahead` stores them by key.
    3. `hand_out_by_turns` chooses waiting entries of keys that are below their limits, and hides them.
    4. `record_moves` moves the group's progress beyond the entries that were read ahead.

    A stepwise batch writes receives with a filter, and counts the waiting messages from time to time.
    """

    __slots__ = ("turn",)
    # Reading ahead takes 10 ms, for which receives of other groups need not wait.
    LANE = "fair receives"

    def __init__(self, receiver: Receiver) -> None:
        super().__init__(receiver)
        self.turn = runtime.part(Turns).of(receiver)
        self.is_plain = receiver.filter is None and not (receiver.hold.is_small or self.turn.must_count)

    @classmethod
    def statements(cls, operations: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        if are_short(operations):
            return ()
        readings = readings_of(operations)
        columns: dict[str, bytes | None] = {
            "segment_id": segment_id,
            **columns_of(readings),
            **columns_of_queues(readings),
            **_columns_of_turns(_first_ones(readings)),
        }
        statements = (CHOOSE_AHEAD, READ_AHEAD, HAND_OUT_BY_TURNS, RECORD_MOVES)
        return [Call(statement, columns) for statement in statements]

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        rows = pipeline.rows(results, HAND_OUT_BY_TURNS)
        if not rows:
            return
        ahead = dict(ENTRIES.iter_unpack(results[CHOOSE_AHEAD].get_value(0, 0) or b""))
        read = {(row.segment_id, row.log_offset): row for row in pipeline.rows(results, log.READ_HANDED)}
        readings = readings_of(operations)
        first_ones = _first_ones(readings)
        receives = [receive for reading in readings for receive in reading.receives]
        queues = [queue for reading in readings for queue in reading.queues]
        packed_entries = b"".join(row.handed or b"" for row in rows)
        entries = packed.entries([one.nonce for one in receives], queues, packed_entries)
        handed = dict(zip(receives, entries, strict=True))
        for row in rows:
            reading, more = readings[row.reading - 1], ahead.get(row.reading, 0)
            first_ones[row.reading - 1].turn.answered(reading.receives[0].nonce, row.last_key, more - row.taken)
            for receive in reading.receives:
                is_left = row.cut or row.taken > 0 or more > 0
                its = handed[receive]
                receive.result = Handout(receive.receiver, its, read, more=is_left and not its)
                receive.result.again_seconds = row.again_seconds
                receive.result.count_bodies()


def kind_of(receiver: Receiver) -> type[Receiving]:
    """The operation that hands out entries to a receive."""
    return FairReceiving if receiver.reads_ahead and not receiver.group.ordered else Receiving


def _first_ones(readings: Sequence[Reading]) -> list[FairReceiving]:
    """The first receive of each reading."""
    return [cast(FairReceiving, reading.receives[0]) for reading in readings]


def _columns_of_turns(receives: Sequence[FairReceiving]) -> dict[str, bytes | None]:
    columns = {
        # The register `mq.readings` names the readings, `mq.ahead` the entries to read ahead.
        "readings": None,
        "ahead": None,
        "room_ahead": arrays.int4s([0 if one.turn.is_full else MAX_READ_AHEAD for one in receives]),
        "property": arrays.texts([keys.pattern(one.receiver.key_source) for one in receives]),
        "key_length": arrays.int4s([keys.length(one.receiver.key_source) for one in receives]),
        "max_offsets": arrays.int4(MAX_OFFSETS),
        "after": arrays.texts([one.turn.key for one in receives]),
        "follows": arrays.int8s([one.turn.under_way for one in receives]),
        "only_whole": b"\x00",
        "max_looked": arrays.int4(MAX_LOOKED),
        "look_on_seconds": arrays.float8(LOOK_ON_SECONDS),
        "slot_seconds": arrays.float8(SLOT_SECONDS),
    }
    for one in receives:
        one.turn.under_way = one.nonce
    return columns
