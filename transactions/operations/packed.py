"""Half messages and ends packed for the pipelined batch: the columns of their statements, and what these answer."""

import struct
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from store.db import arrays
from store.db.pipeline import Call
from store.db.statements import Statement
from store.messages import accept
from store.messages.accept import Accepted
from store.queues import ENTER_PLACED
from store.segments.log import APPEND_PLACED
from transactions import schedule


class BegunMessages(NamedTuple):
    """When half messages are stored, and their log offsets by place as an array's text, NULL for what is left out."""

    stored_at: datetime
    appended: str


class EndedMessages(NamedTuple):
    """Of each message that was ended: its end's turn, id, topic, queue and queue offset, packed."""

    ended: bytes | None
    entries: str


class NamedQueues(NamedTuple):
    """The queues of the half messages that are to be committed."""

    ending: str


BEGIN_HALVES = Statement(__file__, "begin_halves", BegunMessages)
END_FREE_HALVES = Statement(__file__, "end_free_halves", EndedMessages)
NAME_QUEUES = Statement(__file__, "name_queues", NamedQueues)

# A message that END_FREE_HALVES ended; the queue offset of one that was rolled back is -1.
ENDED = struct.Struct("!i16siiq")

# Columns that are None in almost all rows.
ENDPOINTS, API_KEYS = arrays.sparse(arrays.int4s), arrays.sparse(arrays.int8s)
LOG_OFFSETS, REMARKS = arrays.sparse(arrays.int8s), arrays.sparse(arrays.texts)


class PlainBegin(Protocol):
    """A begin of one message, as it is packed. With `may_repeat` its client chose the transaction's id."""

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
    """A decision, as it is packed, with the queue of its half message where this process knows it."""

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
    columns = {
        **accept.columns(
            [one.message.content for one in begins],
            [one.message.message_id for one in begins if one.message.may_repeat],
        ),
        "segment_id": segment_id,
        "transaction_id": arrays.uuids([one.key for one in begins]),
        "producer_group_id": arrays.int4s([one.group_id for one in begins]),
        "group_ids": arrays.int4s(sorted({one.group_id for one in begins})),
        "repeatable_transactions": arrays.uuids([one.key for one in begins if one.may_repeat]),
        "endpoint_id": ENDPOINTS([one.endpoint_id for one in begins]),
        "immunity_seconds": arrays.float8s([one.immunity_seconds for one in begins]),
        "line": arrays.int4s([schedule.line(one.immunity_seconds) for one in begins]),
        "api_key_id": API_KEYS([one.api_key_id for one in begins]),
    }
    return [Call(statement, columns) for statement in (BEGIN_HALVES, APPEND_PLACED)]


def log_offsets(appended: bytes) -> Iterable[int | None]:
    """The log offsets that BEGIN_HALVES took, by place; None for a message that it left out."""
    return [None if offset == b"NULL" else int(offset) for offset in appended[1:-1].split(b",")]


def calls_of_ends(ends: Sequence[PlainEnd], segment_id: bytes) -> Iterable[Call]:
    """The statements that end these transactions, under the locks: sorted by id, each with its turn, from 1 on."""
    keys = [one.key for one in ends]
    turns = sorted(range(len(keys)), key=keys.__getitem__)
    by_id = [ends[turn] for turn in turns]
    columns = {
        "segment_id": segment_id,
        "turn": arrays.int4s([turn + 1 for turn in turns]),
        "transaction_id": arrays.uuids([one.key for one in by_id]),
        "group_id": arrays.int4s([one.group_id for one in by_id]),
        "log_offset": LOG_OFFSETS([one.log_offset for one in by_id]),
        "decision": arrays.texts([one.decision for one in by_id]),
        "decided_by": arrays.texts([one.decided_by for one in by_id]),
        "remark": REMARKS([one.remark for one in by_id]),
    }
    statements = (END_FREE_HALVES, ENTER_PLACED) if "COMMIT" in [one.decision for one in ends] else (END_FREE_HALVES,)
    return [Call(statement, columns) for statement in statements]
