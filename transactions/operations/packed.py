"""Half messages and ends in pipelined batches: the packed columns of the statements, and their answers."""

import struct
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from store.db import arrays
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.messages import accept
from store.messages.accept import Accepted
from store.queues import ENTER_NUMBERED
from store.segments.log import APPEND_NUMBERED, APPEND_NUMBERED_OF_ONE
from transactions import schedule
from transactions.rows import EntriesOfEnds, HalfOffsets

BEGIN_HALVES = Statement(__file__, "begin_halves", HalfOffsets)
BEGIN_HALVES_OF_ONE = Statement(__file__, "begin_halves_of_one", HalfOffsets)
END_FREE_HALVES = Statement(__file__, "end_free_halves", EntriesOfEnds)
END_FREE_HALVES_OF_ONE = Statement(__file__, "end_free_halves_of_one", EntriesOfEnds)
NAME_QUEUES = Statement(__file__, "name_queues", one=str)

# The fields of a decided transaction's message: the number of its end in the batch, id, topic, queue, queue offset.
ENDED = struct.Struct("!i16siiq")


class PlainBegin(Protocol):
    """A begin of one message, with the values for the statements.

    `may_repeat`: the client chose the transaction's id.
    """

    @property
    def key(self) -> bytes: ...

    @property
    def message(self) -> Accepted: ...

    @property
    def group_id(self) -> int: ...

    @property
    def endpoint_id(self) -> int | None: ...

    @property
    def immunity_seconds(self) -> float: ...

    @property
    def api_key_id(self) -> int | None: ...

    @property
    def may_repeat(self) -> bool: ...


class PlainEnd(Protocol):
    """A decision, with the values for the statements, and the queue of its half message if this process knows it."""

    @property
    def key(self) -> bytes: ...

    @property
    def queue(self) -> tuple[int, int] | None: ...

    @property
    def decision(self) -> str: ...

    @property
    def decided_by(self) -> str: ...

    @property
    def group_id(self) -> int | None: ...

    @property
    def log_offset(self) -> int | None: ...

    @property
    def remark(self) -> str | None: ...


def calls_of_begins(begins: Sequence[PlainBegin], segment_id: bytes) -> Iterable[Call]:
    """The statements that store these half messages, under the locks."""
    is_one = len(begins) == 1
    pack = arrays.alone if is_one else arrays.together
    statements = (BEGIN_HALVES_OF_ONE, APPEND_NUMBERED_OF_ONE) if is_one else (BEGIN_HALVES, APPEND_NUMBERED)
    columns = {
        **accept.columns(
            [one.message.content for one in begins],
            [one.message.message_id for one in begins if one.message.may_repeat],
            pack,
        ),
        "segment_id": segment_id,
        "transaction_id": pack(arrays.UUIDS, [one.key for one in begins]),
        "producer_group_id": pack(arrays.INT4S, [one.group_id for one in begins]),
        "group_ids": pack(arrays.INT4S, sorted({one.group_id for one in begins})),
        "repeatable_transactions": pack(arrays.UUIDS, [one.key for one in begins if one.may_repeat]),
        "endpoint_id": pack(arrays.SPARSE_INT4S, [one.endpoint_id for one in begins]),
        "immunity_seconds": pack(arrays.FLOAT8S, [one.immunity_seconds for one in begins]),
        "line": pack(arrays.INT4S, [schedule.line(one.immunity_seconds) for one in begins]),
        "api_key_id": pack(arrays.SPARSE_INT8S, [one.api_key_id for one in begins]),
    }
    return [Call(statement, columns) for statement in statements]


def begun(results: Results) -> tuple[datetime, Sequence[int | None]]:
    """When half messages were stored, and their log offsets by number; None for a message that was left out."""
    written = results[BEGIN_HALVES_OF_ONE if BEGIN_HALVES_OF_ONE in results else BEGIN_HALVES]
    appended = written.get_value(0, 1) or b""
    offsets = [None if offset == b"NULL" else int(offset) for offset in appended[1:-1].split(b",")]
    return arrays.moment(written.get_value(0, 0) or b""), offsets


def calls_of_ends(ends: Sequence[PlainEnd], segment_id: bytes) -> Iterable[Call]:
    """The statements that end these transactions, under the locks: rows sorted by id, each with its turn from 1 on."""
    is_one = len(ends) == 1
    pack, end = (arrays.alone, END_FREE_HALVES_OF_ONE) if is_one else (arrays.together, END_FREE_HALVES)
    keys = [one.key for one in ends]
    turns = sorted(range(len(keys)), key=keys.__getitem__)
    by_id = [ends[turn] for turn in turns]
    columns = {
        "segment_id": segment_id,
        "turn": pack(arrays.INT4S, [turn + 1 for turn in turns]),
        "transaction_id": pack(arrays.UUIDS, [one.key for one in by_id]),
        "group_id": pack(arrays.INT4S, [one.group_id for one in by_id]),
        "log_offset": pack(arrays.SPARSE_INT8S, [one.log_offset for one in by_id]),
        "decision": pack(arrays.TEXTS, [one.decision for one in by_id]),
        "decided_by": pack(arrays.TEXTS, [one.decided_by for one in by_id]),
        "remark": pack(arrays.SPARSE_TEXTS, [one.remark for one in by_id]),
    }
    statements = (end, ENTER_NUMBERED) if "COMMIT" in [one.decision for one in ends] else (end,)
    return [Call(statement, columns) for statement in statements]


def ended(results: Results) -> Iterable[tuple[int, bytes, int, int, int]]:
    """The fields of ENDED for each message of a decided transaction. After a rollback the queue offset is -1."""
    written = results[END_FREE_HALVES_OF_ONE if END_FREE_HALVES_OF_ONE in results else END_FREE_HALVES]
    # If the only end of a batch is left out, there is no row.
    return ENDED.iter_unpack((written.get_value(0, 0) or b"") if written.ntuples else b"")
