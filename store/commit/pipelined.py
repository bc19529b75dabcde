"""A pipelined batch: the operations of one transaction, sent to PostgreSQL in one message together with the commit.

A batch has these statements in this order; it leaves out the statements that it does not need, but never the second:

1. Find the queues to be locked for half messages that are to be committed, and put them into the register `mq.ending`.
2. Join the writers of the log and lock the queues of all sends and ends, in sorted order, so that no two batches
   deadlock. Every later statement has a newer snapshot than these locks.
3. Half messages: leave out known half messages, append the others, insert their rows.
4. Sends: append the messages and enter them in their queues.
5. Ends: delete the row of the half message (the decision), insert the operation, enter the message.
6. Commit.
7. In a second transaction: read the written rows; the answers may be larger than the buffers of the sockets.

Some operations write or lock more rows between 2 and 3: a forward acks, a receive locks the progress of its group.

A statement leaves out an operation that it cannot write, without a reason: such an operation has no result, and is
written stepwise. This process reads no answer before the commit, so if the process is stopped it holds no lock.
"""

import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

from store.commit.operation import Pipelined, answer, outdated
from store.db import arrays
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.notices.listeners import Read
from store.notices.notifier import Wakeups
from store.rows import JoinedLog, LockedQueue, LockedQueues
from store.segments.log import APPENDERS_LOCK

JOIN_AND_LOCK = Statement(__file__, "join_and_lock", LockedQueues)
JOIN_AND_LOCK_ONE = Statement(__file__, "join_and_lock_one", LockedQueue)
JOIN_LOG = Statement(__file__, "join_log", JoinedLog)
# A batch has exactly one of the statements in JOINS.
JOINS: tuple[Statement[Any], ...] = (JOIN_AND_LOCK, JOIN_AND_LOCK_ONE, JOIN_LOG)

# The limit of one batch, by `accept.size_of`; more operations wait for the next batch. The buffers of the sockets hold
# more, so a batch leaves this process at once: a batch that is sent in part holds its locks until the server ends it.
MAX_BATCH_BYTES = 1024 * 1024
_LOG_LOCK = struct.pack("!q", APPENDERS_LOCK)
# At most this number of reads joins a batch, and no read joins a batch of more operations, whose callers would wait for
# the reads.
MOST_JOINED = 8
_FLAG = {False: b"\x00", True: b"\x01"}


class PipelinedBatch:
    """The operations of one transaction, by their class."""

    def __init__(self, operations: Sequence[Pipelined[Any]], attempts: int = 0, *, only_free: bool = False) -> None:
        self.operations = operations
        self.attempts = attempts
        # Whether the batch skips the queues that another session has locked.
        self.only_free = only_free
        self.segment_id = 0
        # The time at which the writer sent the batch, by the event loop's clock.
        self.sent_at = 0.0
        by_class: defaultdict[type[Pipelined[Any]], list[Pipelined[Any]]] = defaultdict(list)
        for operation in operations:
            by_class[type(operation)].append(operation)
            for part in operation.parts:
                by_class[type(part)].append(part)
        self._classes = sorted(by_class.items(), key=lambda item: item[0].ORDER)
        # The reads that have joined a batch of another lane.
        reads = [one for class_, found in self._classes if class_.IS_READ for one in found if one.joined]
        self._reads = cast(list[Read], reads)
        self.ordered = True in [operation.ordered for operation in operations]

    def __len__(self) -> int:
        return len(self.operations)

    @property
    def requests(self) -> int:
        """The number of the batch's operations, not counting reads that have joined it."""
        return len(self.operations) - len(self._reads)

    def under(self, version: int) -> "PipelinedBatch":
        """The batch without operations whose cell was found by an older map than `version`; with one cell it is 0.

        `version` is the connection's. The cell of the removed operations is found again.
        """
        return self._without(outdated(self.operations, version) if version else ())

    def in_turn(self) -> "PipelinedBatch":
        """The batch without operations that must wait for an earlier operation that is being written stepwise."""
        return self._without([one for one in self.operations if one.ordered and one.overtakes])

    def _without(self, left_out: Sequence[Pipelined[Any]]) -> "PipelinedBatch":
        if not left_out:
            return self
        answer(left_out)
        left = [one for one in self.operations if one not in left_out]
        return PipelinedBatch(left, self.attempts, only_free=self.only_free)

    def calls(self, segment_id: int) -> list[Call]:
        """The statements of the batch, given the segment that this process believes to be open."""
        self.segment_id = segment_id
        packed = arrays.int4(segment_id)
        calls = [call for class_, operations in self._classes for call in class_.before_locks(operations)]
        queues = self.queues()
        calls.append(_lock_all(queues, _FLAG[self.only_free]) if calls or self.only_free else _lock(queues))
        for class_, operations in self._classes:
            calls.extend(class_.further_locks(operations, packed, _FLAG[self.only_free]))
        for class_, operations in self._classes:
            calls.extend(class_.statements(operations, packed))
        return calls

    def queues(self) -> set[tuple[int, int]]:
        """The queues that the batch extends, as far as this process knows."""
        return {queue for class_, operations in self._classes for queue in class_.queues(operations)}

    def behind_commit(self) -> list[Call]:
        """The statements that run after the commit, in a second transaction."""
        return [call for class_, operations in self._classes for call in class_.behind_commit(operations)]

    def settle(self, results: Results) -> int | None:
        """Sets the results of the written operations. Returns the segment that was open as the batch began."""
        for class_, operations in self._classes:
            class_.settle(operations, results)
        for read in self._reads:
            read.see(row for one in self.operations for row in one.stored(self.segment_id))
        seen = next(results[join] for join in JOINS if join in results).get_value(0, 0)
        return None if seen is None else int.from_bytes(seen)

    def left_out(self) -> list[Pipelined[Any]]:
        """The operations without a result: nothing was written for them."""
        return [operation for operation in self.operations if operation.result is None]


def joined(operations: Sequence[Pipelined[Any]], wakeups: Wakeups, writer: object) -> PipelinedBatch:
    """The batch of these operations. A small batch also gets the reads of requests that wait for its entries."""
    batch = PipelinedBatch(operations)
    if len(batch) > MOST_JOINED:
        return batch
    topic_ids = {topic_id for topic_id, _ in batch.queues()}
    # `notices` does not import `Pipelined`, although each read is one.
    reads = cast(list[Pipelined[Any]], wakeups.joining(topic_ids, writer, MOST_JOINED))
    return PipelinedBatch([*operations, *reads]) if reads else batch


def _lock(queues: set[tuple[int, int]]) -> Call:
    """Joins the log's writers and locks these queues. With few callers there is one queue or none."""
    if len(queues) > 1:
        return _lock_all(queues, _FLAG[False])
    if not queues:
        return Call(JOIN_LOG, {"log_lock": _LOG_LOCK})
    [(topic_id, queue_id)] = queues
    parameters = {"topic_id": arrays.int4(topic_id), "queue_id": arrays.int4(queue_id)}
    return Call(JOIN_AND_LOCK_ONE, {"log_lock": _LOG_LOCK, **parameters})


def _lock_all(queues: set[tuple[int, int]], only_free: bytes) -> Call:
    """Like `_lock`, and also locks the queues in `mq.ending`. `only_free`: skips queues that are already locked."""
    return Call(
        JOIN_AND_LOCK,
        {
            "log_lock": _LOG_LOCK,
            "locked_topic_id": arrays.int4s([topic for topic, _ in queues]),
            "locked_queue_id": arrays.int4s([queue for _, queue in queues]),
            "only_free": only_free,
        },
    )
