"""A pipelined batch: the requests of one transaction that PostgreSQL is sent whole, its commit included.

The statements of a batch, in their order, all of them conditional but the second:

1. What must be known before the locks: the queues of the half messages that are to be committed, for the register
   `mq.ending`.
2. Join the writers of the log and lock the queues of all sends and ends, in one sorted statement: no two batches
   deadlock. Every later statement has a newer snapshot than these locks.
3. Half messages: refuse the known ones, append the others, keep them.
4. Sends: append and enter.
5. Ends: delete (the decision), record, enter.
6. Commit.
7. In a transaction of their own: reads of what was written, whose answers may be larger than the sockets hold.

Requests that are no writes of the log lock more than it, between 2 and 3: receives, the progress of their groups.

A statement leaves out what it cannot write, and gives no reason: such a request has no answer, and is written stepwise.
Nothing is read back in between, so no lock outlives the round trip, however long this process is stopped.
"""

import asyncio
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from store.db import arrays
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.segments.log import APPENDERS_LOCK

Answer = TypeVar("Answer")
# Takes the problem of a request that has none of an answer, or None; raises nothing.
Settled = Callable[[Exception | None], None]


class LockedQueues(NamedTuple):
    """The open segment, and the queues that are locked now."""

    segment_id: int | None
    locked_queues: str


class JoinedLog(NamedTuple):
    """The open segment, of a batch that locks no queue."""

    segment_id: int | None
    joined: str


class LockedQueue(NamedTuple):
    """The open segment, and the one queue that is locked now."""

    segment_id: int | None
    joined: str
    locked_queues: str


JOIN_AND_LOCK = Statement(__file__, "join_and_lock", LockedQueues)
JOIN_AND_LOCK_ONE = Statement(__file__, "join_and_lock_one", LockedQueue)
JOIN_LOG = Statement(__file__, "join_log", JoinedLog)
# One of them is in each batch.
JOINS: tuple[Statement[Any], ...] = (JOIN_AND_LOCK, JOIN_AND_LOCK_ONE, JOIN_LOG)

# Of a batch, by `accept.size_of`. The sockets on the way hold more than that, so that a batch leaves this process at
# once: one whose sending is interrupted holds its locks until the server ends it.
MAX_BATCH_BYTES = 1024 * 1024
_LOG_LOCK = struct.pack("!q", APPENDERS_LOCK)
_FLAG = {False: b"\x00", True: b"\x01"}


class Request(Generic[Answer]):
    """One request on its way through a pipelined batch, which has no other request of the same key.

    `answer` stays None when the statements leave the request out. `ids` are those that a batch has once: its key, and
    the ids of messages that another request may bring, too. The class methods are those of a kind of request: they see
    all of a batch at once.
    """

    __slots__ = ("_future", "_is_resolved", "answer", "ids", "key", "ordered", "settled", "size")

    # The requests of a lane share a writer, and so their batches; those of another lane keep no order with them.
    LANE: ClassVar[str] = "log"
    # Where the statements of this kind stand in a batch.
    ORDER: ClassVar[int] = 0
    # Goes before those that are not, so that under load the backlog drains.
    URGENT: ClassVar[bool] = False

    def __init__(self, key: bytes, size: int = 0, ids: Iterable[bytes] = (), *, ordered: bool = False) -> None:
        self.key = key
        self.ids = (key, *ids)
        self.size = size
        # No later batch may overtake it: a batch that is sent again would come behind the next one.
        self.ordered = ordered
        self.answer: Answer | None = None
        self._is_resolved = False
        # Called in place of a waiter, in the turn of the event loop in which the answer is read.
        self.settled: Settled | None = None
        self._future: asyncio.Future[Answer | None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether nothing waits for it: it is resolved, or its waiter was cancelled."""
        return self._is_resolved or (self._future is not None and self._future.done())

    @property
    def future(self) -> asyncio.Future[Answer | None]:
        """Done once the request is resolved. Made at its first use: almost no request of the message path needs it."""
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        return self._future

    @property
    def overtakes(self) -> bool:
        """Whether it must be written stepwise, because it would come before an earlier request that still is."""
        return False

    @classmethod
    def before_locks(cls, requests: Sequence[Self]) -> Iterable[Call]:
        """Statements that name queues for the lock, in the register `mq.ending`."""
        return ()

    @classmethod
    def queues(cls, requests: Sequence[Self]) -> Iterable[tuple[int, int]]:
        """The queues, as topic and number, that the requests extend, as far as this process can tell."""
        return ()

    @classmethod
    def further_locks(cls, requests: Sequence[Self], only_free: bytes) -> Iterable[Call]:
        """Statements that lock more than log and queues; with `only_free` they pass over what is locked elsewhere."""
        return ()

    @classmethod
    def calls(cls, requests: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        """The statements that write the requests, under the locks."""
        raise NotImplementedError

    @classmethod
    def behind_commit(cls, requests: Sequence[Self]) -> Iterable[Call]:
        """Statements that read what was written, with no lock held any more; `settle` may have no answers of them."""
        return ()

    @classmethod
    def settle(cls, requests: Sequence[Self], results: Results) -> None:
        """After the commit: sets the answers, and does what is to follow in this process."""
        raise NotImplementedError

    def resolve(self, problem: Exception | None = None) -> None:
        """Answers the waiter, unless it has gone away."""
        if self._is_resolved or (self._future is not None and self._future.done()):
            return
        self._is_resolved = True
        if self.settled is not None:
            # It knows this request: left in place it would make a circle, which waits for the garbage collector.
            settled, self.settled = self.settled, None
            if self._future is not None:
                self._future.set_result(self.answer)
            settled(problem)
        elif problem is None:
            self.future.set_result(self.answer)
        else:
            self.future.set_exception(problem)


class PipelinedBatch:
    """The requests of one transaction, by their kind."""

    def __init__(self, requests: Sequence[Request[Any]], attempts: int = 0, *, only_free: bool = False) -> None:
        self.requests = requests
        self.attempts = attempts
        # Passes over the queues that another session has locked.
        self.only_free = only_free
        self.segment_id = 0
        by_kind: dict[type[Request[Any]], list[Request[Any]]] = {}
        for request in requests:
            by_kind.setdefault(type(request), []).append(request)
        self._kinds = sorted(by_kind.items(), key=lambda item: item[0].ORDER)
        self.ordered = True in [request.ordered for request in requests]

    def __len__(self) -> int:
        return len(self.requests)

    def calls(self, segment_id: int) -> list[Call]:
        """The statements of the batch for the segment that is believed to be the open one."""
        self.segment_id = segment_id
        packed = arrays.int4(segment_id)
        calls = [call for kind, requests in self._kinds for call in kind.before_locks(requests)]
        queues = {queue for kind, requests in self._kinds for queue in kind.queues(requests)}
        calls.append(_lock_all(queues, _FLAG[self.only_free]) if calls or self.only_free else _lock(queues))
        for kind, requests in self._kinds:
            calls.extend(kind.further_locks(requests, _FLAG[self.only_free]))
        for kind, requests in self._kinds:
            calls.extend(kind.calls(requests, packed))
        return calls

    def behind_commit(self) -> list[Call]:
        """The statements of the transaction that follows the commit."""
        return [call for kind, requests in self._kinds for call in kind.behind_commit(requests)]

    def settle(self, results: Results) -> int | None:
        """Sets the answers of what was written; returns the segment that was open as the batch began."""
        for kind, requests in self._kinds:
            kind.settle(requests, results)
        seen = next(results[join] for join in JOINS if join in results).get_value(0, 0)
        return None if seen is None else int.from_bytes(seen)

    def left_out(self) -> list[Request[Any]]:
        """The requests that nothing was written for."""
        return [request for request in self.requests if request.answer is None]


def _lock(queues: set[tuple[int, int]]) -> Call:
    """Joins the log and locks these queues. With few callers that is one queue or none."""
    if len(queues) > 1:
        return _lock_all(queues, _FLAG[False])
    if not queues:
        return Call(JOIN_LOG, {"log_lock": _LOG_LOCK})
    [(topic_id, queue_id)] = queues
    parameters = {"topic_id": arrays.int4(topic_id), "queue_id": arrays.int4(queue_id)}
    return Call(JOIN_AND_LOCK_ONE, {"log_lock": _LOG_LOCK, **parameters})


def _lock_all(queues: set[tuple[int, int]], only_free: bytes) -> Call:
    """As `_lock`, and those that an earlier statement names; with `only_free` none that another session has locked."""
    return Call(
        JOIN_AND_LOCK,
        {
            "log_lock": _LOG_LOCK,
            "locked_topic_id": arrays.int4s([topic for topic, _ in queues]),
            "locked_queue_id": arrays.int4s([queue for _, queue in queues]),
            "only_free": only_free,
        },
    )
