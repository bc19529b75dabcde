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
from store.segments.log import APPEND_NEW, APPEND_ONE
from transactions import schedule


class RefusedPlaces(NamedTuple):
    """The places of the half messages that are not to be stored."""

    refused: str


class BegunOne(NamedTuple):
    """When and where one message is stored; no row when it is left out."""

    stored_at: datetime
    log_offset: int
    appended: str


class EndedMessages(NamedTuple):
    """Of each message that was ended: its request's place, id, topic, queue and queue offset, packed."""

    ended: bytes | None
    entries: str


class NamedQueues(NamedTuple):
    """The queues of the half messages that are to be committed."""

    ending: str


# Of one operation by itself there is no `unnest`, no sort and no column as an array: a lone caller waits for each.
BEGIN_ONE = Statement(__file__, "begin_one", BegunOne)
END_FREE_HALVES = Statement(__file__, "end_free_halves", EndedMessages)
END_ONE_HALF = Statement(__file__, "end_one_half", EndedMessages)
KEEP_APPENDED = Statement(__file__, "keep_appended")
NAME_QUEUES = Statement(__file__, "name_queues", NamedQueues)
REFUSE_BEGUN = Statement(__file__, "refuse_begun", RefusedPlaces)

# One of the log offsets that APPEND_NEW answers; -1 where nothing was stored.
LOG_OFFSET = struct.Struct("!q")
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
    if len(begins) == 1:
        return _calls_of_one_begin(begins[0], segment_id)
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
    return [Call(statement, columns) for statement in (REFUSE_BEGUN, APPEND_NEW, KEEP_APPENDED)]


def _calls_of_one_begin(begin: PlainBegin, segment_id: bytes) -> Iterable[Call]:
    content = begin.message.content
    columns = {
        **accept.columns_of_one(content),
        "segment_id": segment_id,
        "transaction_id": begin.key,
        "producer_group_id": arrays.int4(begin.group_id),
        "repeatable": content.message_id.bytes if begin.message.may_repeat else None,
        "repeatable_transaction": begin.key if begin.may_repeat else None,
        "endpoint_id": None if begin.endpoint_id is None else arrays.int4(begin.endpoint_id),
        "immunity_seconds": arrays.float8(begin.immunity_seconds),
        "line": arrays.int4(schedule.line(begin.immunity_seconds)),
        "api_key_id": None if begin.api_key_id is None else arrays.int8(begin.api_key_id),
    }
    return [Call(statement, columns) for statement in (BEGIN_ONE, APPEND_ONE)]


def is_one(ends: Sequence[PlainEnd]) -> bool:
    """Whether it is one end, and the queue of its half message is known or not needed."""
    return len(ends) == 1 and (ends[0].queue is not None or ends[0].decision != "COMMIT")


def calls_of_ends(ends: Sequence[PlainEnd], segment_id: bytes) -> Iterable[Call]:
    """The statements that end these transactions, under the locks."""
    if is_one(ends):
        return _calls_of_one_end(ends[0], segment_id)
    columns = {
        "segment_id": segment_id,
        "transaction_id": arrays.uuids([one.key for one in ends]),
        "group_id": arrays.int4s([one.group_id for one in ends]),
        "log_offset": LOG_OFFSETS([one.log_offset for one in ends]),
        "decision": arrays.texts([one.decision for one in ends]),
        "decided_by": arrays.texts([one.decided_by for one in ends]),
        "remark": REMARKS([one.remark for one in ends]),
    }
    return [Call(statement, columns) for statement in (END_FREE_HALVES, ENTER_PLACED)]


def _calls_of_one_end(end: PlainEnd, segment_id: bytes) -> Iterable[Call]:
    topic_id, queue_id = end.queue or (None, None)
    columns = {
        "segment_id": segment_id,
        "topic_id": None if topic_id is None else arrays.int4(topic_id),
        "queue_id": None if queue_id is None else arrays.int4(queue_id),
        "transaction_id": end.key,
        "group_id": None if end.group_id is None else arrays.int4(end.group_id),
        "log_offset": None if end.log_offset is None else arrays.int8(end.log_offset),
        "decision": end.decision.encode(),
        "decided_by": end.decided_by.encode(),
        "remark": None if end.remark is None else end.remark.encode(),
    }
    statements = (END_ONE_HALF, ENTER_PLACED) if end.decision == "COMMIT" else (END_ONE_HALF,)
    return [Call(statement, columns) for statement in statements]
