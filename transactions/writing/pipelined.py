"""Half messages and ends in pipelined batches: their statements, and what these answer.

One half message of one message without a delay, and the end of a pending transaction: what almost all requests are.
"""

import struct
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Self

from store.commit.pipelined import Request
from store.db import arrays
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.messages import accept
from store.messages.accept import Accepted
from store.messages.ids import of_int
from store.notices import notifier
from store.process import runtime
from store.queues import ENTER_PLACED
from store.segments.log import APPEND_NEW, APPEND_ONE
from transactions import schedule
from transactions.answers import EndedMessage


class RefusedPlaces(NamedTuple):
    """The places of the half messages that are not to be stored."""

    refused: str


class EndedMessages(NamedTuple):
    """Of each message that was ended: its request's place, id, topic, queue and queue offset, packed."""

    ended: bytes | None
    entries: str


class BegunOne(NamedTuple):
    """When and where one message is stored; no row when it is left out."""

    stored_at: datetime
    log_offset: int
    appended: str


class NamedQueues(NamedTuple):
    """The queues of the half messages that are to be committed."""

    ending: str


# Of one request by itself there is no `unnest`, no sort and no column as an array: what a lone caller has to wait for.
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

# 16 MiB at most. An older half message is looked up by NAME_QUEUES, as one that another process has begun.
MAX_REMEMBERED = 65_536


class BegunQueues:
    """The queues of the half messages begun here last: their ends need no statement before the locks."""

    def __init__(self) -> None:
        self._queues: dict[bytes, tuple[int, int]] = {}

    def keep(self, transaction_id: bytes, queue: tuple[int, int]) -> None:
        """Remembers the queue, as topic and number, of a half message that is stored."""
        if len(self._queues) >= MAX_REMEMBERED:
            del self._queues[next(iter(self._queues))]
        self._queues[transaction_id] = queue

    def take(self, transaction_id: bytes) -> tuple[int, int] | None:
        """The queue of a half message that is to be ended, forgotten with this; None when it is not known here."""
        return self._queues.pop(transaction_id, None)


class Kept(NamedTuple):
    """Where and when a half message was stored."""

    stored_at: datetime
    log_offset: int


class Beginning(Request[Kept]):
    """A transaction of one message that is to be begun."""

    __slots__ = (
        "accepted",
        "api_key_id",
        "endpoint_id",
        "group_id",
        "immunity_seconds",
        "may_repeat",
        "transaction_id",
    )
    ORDER = 1

    def __init__(
        self,
        accepted: Accepted,
        transaction_id: uuid.UUID,
        group_id: int,
        endpoint_id: int | None,
        immunity_seconds: float,
        api_key_id: int | None,
        *,
        may_repeat: bool,
    ) -> None:
        super().__init__(transaction_id.bytes, accept.size_of((accepted.content,)), (accepted.message_id.bytes,))
        self.accepted = accepted
        self.transaction_id = transaction_id
        self.group_id = group_id
        self.endpoint_id = endpoint_id
        self.immunity_seconds = immunity_seconds
        self.api_key_id = api_key_id
        # The client chose the transaction's id.
        self.may_repeat = may_repeat

    @classmethod
    def calls(cls, requests: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        if len(requests) == 1:
            return requests[0]._calls_of_one(segment_id)
        columns = {
            **accept.columns(
                [request.accepted.content for request in requests],
                [request.accepted.message_id for request in requests if request.accepted.may_repeat],
            ),
            "segment_id": segment_id,
            "transaction_id": arrays.uuids([request.key for request in requests]),
            "producer_group_id": arrays.int4s([request.group_id for request in requests]),
            "group_ids": arrays.int4s(sorted({request.group_id for request in requests})),
            "repeatable_transactions": arrays.uuids([request.key for request in requests if request.may_repeat]),
            "endpoint_id": ENDPOINTS([request.endpoint_id for request in requests]),
            "immunity_seconds": arrays.float8s([request.immunity_seconds for request in requests]),
            "line": arrays.int4s([schedule.line(request.immunity_seconds) for request in requests]),
            "api_key_id": API_KEYS([request.api_key_id for request in requests]),
        }
        return [Call(statement, columns) for statement in (REFUSE_BEGUN, APPEND_NEW, KEEP_APPENDED)]

    def _calls_of_one(self, segment_id: bytes) -> Iterable[Call]:
        content = self.accepted.content
        columns = {
            **accept.columns_of_one(content),
            "segment_id": segment_id,
            "transaction_id": self.key,
            "producer_group_id": arrays.int4(self.group_id),
            "repeatable": content.message_id.bytes if self.accepted.may_repeat else None,
            "repeatable_transaction": self.key if self.may_repeat else None,
            "endpoint_id": None if self.endpoint_id is None else arrays.int4(self.endpoint_id),
            "immunity_seconds": arrays.float8(self.immunity_seconds),
            "line": arrays.int4(schedule.line(self.immunity_seconds)),
            "api_key_id": None if self.api_key_id is None else arrays.int8(self.api_key_id),
        }
        return [Call(statement, columns) for statement in (BEGIN_ONE, APPEND_ONE)]

    @classmethod
    def settle(cls, requests: Sequence[Self], results: Results) -> None:
        written = results[BEGIN_ONE if len(requests) == 1 else APPEND_NEW]
        if not written.ntuples:
            return
        stored_at = arrays.moment(written.get_value(0, 0) or b"")
        offsets = LOG_OFFSET.iter_unpack(written.get_value(0, 1) or b"")
        begun = runtime.part(BegunQueues)
        for request, (log_offset,) in zip(requests, offsets, strict=True):
            if log_offset >= 0:
                request.answer = Kept(stored_at, log_offset)
                begun.keep(request.key, (request.accepted.topic.id, request.accepted.queue_id))


class Ending(Request[list[EndedMessage]]):
    """The end of a pending transaction. Without a group it is the broker's own."""

    __slots__ = ("decided_by", "decision", "group_id", "log_offset", "queue", "remark", "transaction_id")
    ORDER = 3
    URGENT = True

    def __init__(
        self,
        transaction_id: uuid.UUID,
        decision: str,
        decided_by: str,
        group_id: int | None,
        log_offset: int | None,
        remark: str | None,
    ) -> None:
        super().__init__(transaction_id.bytes)
        self.transaction_id = transaction_id
        self.queue = runtime.part(BegunQueues).take(self.key)
        self.decision = decision
        self.decided_by = decided_by
        self.group_id = group_id
        self.log_offset = log_offset
        self.remark = remark

    @classmethod
    def before_locks(cls, requests: Sequence[Self]) -> Iterable[Call]:
        unknown = [request.key for request in requests if request.decision == "COMMIT" and request.queue is None]
        return [Call(NAME_QUEUES, {"committed": arrays.uuids(unknown)})] if unknown else ()

    @classmethod
    def queues(cls, requests: Sequence[Self]) -> Iterable[tuple[int, int]]:
        return [request.queue for request in requests if request.queue is not None and request.decision == "COMMIT"]

    @classmethod
    def calls(cls, requests: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        if cls._is_one(requests):
            return requests[0]._calls_of_one(segment_id)
        columns = {
            "segment_id": segment_id,
            "transaction_id": arrays.uuids([request.key for request in requests]),
            "group_id": arrays.int4s([request.group_id for request in requests]),
            "log_offset": LOG_OFFSETS([request.log_offset for request in requests]),
            "decision": arrays.texts([request.decision for request in requests]),
            "decided_by": arrays.texts([request.decided_by for request in requests]),
            "remark": REMARKS([request.remark for request in requests]),
        }
        return [Call(statement, columns) for statement in (END_FREE_HALVES, ENTER_PLACED)]

    @classmethod
    def _is_one(cls, requests: Sequence[Self]) -> bool:
        """Whether it is one end, and the queue of its half message is known or not needed."""
        return len(requests) == 1 and (requests[0].queue is not None or requests[0].decision != "COMMIT")

    def _calls_of_one(self, segment_id: bytes) -> Iterable[Call]:
        topic_id, queue_id = self.queue or (None, None)
        columns = {
            "segment_id": segment_id,
            "topic_id": None if topic_id is None else arrays.int4(topic_id),
            "queue_id": None if queue_id is None else arrays.int4(queue_id),
            "transaction_id": self.key,
            "group_id": None if self.group_id is None else arrays.int4(self.group_id),
            "log_offset": None if self.log_offset is None else arrays.int8(self.log_offset),
            "decision": self.decision.encode(),
            "decided_by": self.decided_by.encode(),
            "remark": None if self.remark is None else self.remark.encode(),
        }
        statements = (END_ONE_HALF, ENTER_PLACED) if self.decision == "COMMIT" else (END_ONE_HALF,)
        return [Call(statement, columns) for statement in statements]

    @classmethod
    def settle(cls, requests: Sequence[Self], results: Results) -> None:
        written = results[END_ONE_HALF if cls._is_one(requests) else END_FREE_HALVES]
        ended = ENDED.iter_unpack((written.get_value(0, 0) if written.ntuples else None) or b"")
        visible: Counter[int] = Counter()
        for place, message_id, topic_id, queue_id, queue_offset in ended:
            request = requests[place - 1]
            if request.answer is None:
                request.answer = []
            offset = None if queue_offset < 0 else queue_offset
            request.answer.append(EndedMessage(of_int(int.from_bytes(message_id)), queue_id, offset))
            if offset is not None:
                visible[topic_id] += 1
        notifier.notify(visible)
