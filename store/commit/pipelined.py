"""A pipelined batch: the operations of one transaction that PostgreSQL is sent whole, its commit included.

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

Operations that are no writes of the log lock more than it, between 2 and 3: receives, the progress of their groups.

A statement leaves out what it cannot write, and gives no reason: such an operation has no result, and is written
stepwise.
Nothing is read back in between, so no lock outlives the round trip, however long this process is stopped.
"""

import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from store.commit.operation import Operation, answer, outdated
from store.db import arrays
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.notices.listeners import Read
from store.notices.notifier import Wakeups
from store.segments.log import APPENDERS_LOCK


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
# A batch of more operations is joined by no read, and by no more reads than this: its callers would wait for them.
MOST_JOINED = 8
_FLAG = {False: b"\x00", True: b"\x01"}


class PipelinedBatch:
    """The operations of one transaction, by their class."""

    def __init__(self, operations: Sequence[Operation[Any]], attempts: int = 0, *, only_free: bool = False) -> None:
        self.operations = operations
        self.attempts = attempts
        # Passes over the queues that another session has locked.
        self.only_free = only_free
        self.segment_id = 0
        by_class: defaultdict[type[Operation[Any]], list[Operation[Any]]] = defaultdict(list)
        for operation in operations:
            by_class[type(operation)].append(operation)
        self._classes = sorted(by_class.items(), key=lambda item: item[0].ORDER)
        # Those that have joined operations of another lane.
        reads = [one for class_, found in self._classes if class_.IS_READ for one in found if one.joined]
        self._reads = cast(list[Read], reads)
        self.ordered = True in [operation.ordered for operation in operations]

    def __len__(self) -> int:
        return len(self.operations)

    @property
    def requests(self) -> int:
        """The operations that were handed in for it."""
        return len(self.operations) - len(self._reads)

    def under(self, version: int) -> "PipelinedBatch":
        """Without the operations that are routed again: a connection was opened under a newer version of the map.

        They are left out. With one cell the version is 0.
        """
        if not version or not (again := outdated(self.operations, version)):
            return self
        answer(again)
        left = [one for one in self.operations if one not in again]
        return PipelinedBatch(left, self.attempts, only_free=self.only_free)

    def calls(self, segment_id: int) -> list[Call]:
        """The statements of the batch for the segment that is believed to be the open one."""
        self.segment_id = segment_id
        packed = arrays.int4(segment_id)
        calls = [call for class_, operations in self._classes for call in class_.before_locks(operations)]
        queues = self.queues()
        calls.append(_lock_all(queues, _FLAG[self.only_free]) if calls or self.only_free else _lock(queues))
        for class_, operations in self._classes:
            calls.extend(class_.further_locks(operations, _FLAG[self.only_free]))
        for class_, operations in self._classes:
            calls.extend(class_.statements(operations, packed))
        return calls

    def queues(self) -> set[tuple[int, int]]:
        """The queues that it extends, as far as this process can tell."""
        return {queue for class_, operations in self._classes for queue in class_.queues(operations)}

    def behind_commit(self) -> list[Call]:
        """The statements of the transaction that follows the commit."""
        return [call for class_, operations in self._classes for call in class_.behind_commit(operations)]

    def settle(self, results: Results) -> int | None:
        """Sets the answers of what was written; returns the segment that was open as the batch began."""
        for class_, operations in self._classes:
            class_.settle(operations, results)
        for read in self._reads:
            read.see(row for one in self.operations for row in one.stored(self.segment_id))
        seen = next(results[join] for join in JOINS if join in results).get_value(0, 0)
        return None if seen is None else int.from_bytes(seen)

    def left_out(self) -> list[Operation[Any]]:
        """The operations that nothing was written for."""
        return [operation for operation in self.operations if operation.result is None]


def joined(operations: Sequence[Operation[Any]], wakeups: Wakeups, writer: object) -> PipelinedBatch:
    """The batch of these operations; a small one with the reads of requests that wait for what it enters."""
    batch = PipelinedBatch(operations)
    if len(batch) > MOST_JOINED:
        return batch
    topic_ids = {topic_id for topic_id, _ in batch.queues()}
    # A read is an operation, which the notices do not know.
    reads = cast(list[Operation[Any]], wakeups.joining(topic_ids, writer, MOST_JOINED))
    return PipelinedBatch([*operations, *reads]) if reads else batch


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
