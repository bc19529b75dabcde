"""An operation of the message path: one class holds everything about it, from the call to the result.

The *stepwise* writer writes every `Operation`: `write` reads the rows, and sets a result or a refusal that gives the
reason. Before that the *pipelined* writer sends the `statements` of all `Pipelined` operations of a batch in one round
trip; a statement leaves out, without a reason, operations that it cannot write; the stepwise writer writes these.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Generic, Self, TypeVar

from store import queues
from store.commit.batch import Batch
from store.db.pipeline import Call, Results
from store.errors import Refusal
from store.messages import MessageRow
from store.notices.listeners import Joined
from store.segments import log

Result = TypeVar("Result")
Written = TypeVar("Written", bound="Operation[Any]")
# A function that is called with the operation's problem, or None, and raises nothing.
Settled = Callable[[Exception | None], None]
# Writes a class of operations. A generator knows log offsets after its first `yield`, queue offsets after its second.
Steps = Coroutine[Any, Any, None] | AsyncGenerator[None, None]


class Operation(Generic[Result]):
    """A write that a caller asks for, with its result or refusal.

    `result` is None until the operation is written, and stays None if a pipelined batch left it out; `refusal` gives
    the reason. A batch has at most one operation of a `key`, and operations with the same key keep their order; an
    empty key is no key. Class methods get all operations of their class in a batch.
    """

    __slots__ = ("before", "cell", "key", "ordered", "refusal", "result", "size", "version")

    # Operations of one lane share writers and batches. There is no order between operations of two lanes.
    LANE: ClassVar[str] = "log"
    # The order of the classes in a batch, the lowest first.
    ORDER: ClassVar[int] = 0
    # Urgent operations are written before the others, so that under load the backlog drains.
    URGENT: ClassVar[bool] = False
    # Whether the caller only reads; then a refusal after the commit need not say whether messages were stored.
    IS_READ: ClassVar[bool] = False

    def __init__(self, key: bytes = b"") -> None:
        self.key = key
        # The size of the operation in bytes, by `accept.size_of`.
        self.size = 0
        # The cell that writes this operation, set by `complete`. None: the cell of the calling task.
        self.cell: int | None = None
        # The version of the map by which the cell was found. None: the cell was not found by a topic.
        self.version: int | None = None
        # Whether no later batch may be sent while the operation's batch is under way, because a repeat of its batch
        # would come after the later batch.
        self.ordered = False
        self.result: Result | None = None
        self.refusal: Refusal | None = None
        # The values that the operation changes, as they were before the change. The audit shows them.
        self.before: object = None

    # Methods that are called before the operation is written.

    def ready(self) -> bool:
        """Whether this process has all data that a pipelined batch needs to write the operation. Raises the refusal."""
        return False

    async def complete(self) -> None:
        """Looks up data that `ready` did not find, and whether the caller has the right. Raises the refusal.

        Creates topics and groups at their first use. Sets the result if there is nothing to write.
        """

    async def renew(self, refusal: Refusal) -> bool:
        """Refreshes cached data that may have caused `refusal`. Returns whether it has changed."""
        return False

    def detour(self) -> AbstractContextManager[None]:
        """A context manager for the stepwise write, entered before any await, so that later operations can wait."""
        return nullcontext()

    def written_topics(self) -> Mapping[int, str]:
        """The names, by id, of the topics to which the operation writes, as far as they are known before the write."""
        return {}

    # The write.

    @classmethod
    def locks(cls, operations: Sequence[Self]) -> Iterable[int]:
        """Keys of the advisory locks that a stepwise batch takes first; one statement takes the keys of all classes."""
        return ()

    @classmethod
    def write(cls, batch: Batch, operations: Sequence[Self]) -> Steps:
        """Writes the operations in the transaction of a stepwise batch, and sets the result or refusal of each.

        A coroutine, or a generator that yields twice: after the first `yield` the records in `batch` have log offsets,
        after the second its entries have queue offsets. A batch may be repeated, so the data that an attempt finds is
        only kept in variables of this method.
        """
        raise NotImplementedError


class Pipelined(Operation[Result]):
    """An operation that a pipelined batch may write.

    `ids`: the key and the ids of messages that another operation may contain too; no two operations of a pipelined
    batch share an id.
    """

    __slots__ = ("_future", "_is_resolved", "ids", "is_plain", "settled")

    # The join of a read to a batch of another lane; None for an operation that has not joined.
    joined: Joined | None = None
    # The operations of which this operation consists; a batch writes them with other operations of their class.
    parts: Sequence["Pipelined[Any]"] = ()

    def __init__(self, key: bytes = b"") -> None:
        super().__init__(key)
        self.ids: tuple[bytes, ...] = (key,)
        # Whether a pipelined batch can write the operation after `complete`.
        self.is_plain = False
        # A function that is called with the outcome at once; the waiter of a future would continue one turn later.
        self.settled: Settled | None = None
        self._is_resolved = False
        self._future: asyncio.Future[Result | None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether no caller waits for the pipelined batch: it was answered, or its waiter was cancelled."""
        return self._is_resolved or (self._future is not None and self._future.done())

    @property
    def future(self) -> asyncio.Future[Result | None]:
        """A future that is done when the pipelined batch is done; made at its first use, as few operations need it."""
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        return self._future

    @property
    def overtakes(self) -> bool:
        """Whether to write the operation stepwise, because an earlier operation of its order is being written so."""
        return False

    def may_be_elsewhere(self, problem: Exception) -> bool:
        """Whether `problem` means that this cell lacks a row which another cell may have."""
        return False

    @classmethod
    def before_locks(cls, operations: Sequence[Self]) -> Iterable[Call]:
        """Statements that write the names of queues to be locked into the register `mq.ending`."""
        return ()

    @classmethod
    def queues(cls, operations: Sequence[Self]) -> Iterable[tuple[int, int]]:
        """The queues (topic id, queue number) that the operations extend, as far as this process knows."""
        return ()

    @classmethod
    def further_locks(cls, operations: Sequence[Self], segment_id: bytes, only_free: bytes) -> Iterable[Call]:
        """Statements that lock, or write, before all `statements`; `only_free`: they skip what other sessions lock."""
        return ()

    @classmethod
    def statements(cls, operations: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        """The statements that write the operations, under the locks."""
        return ()

    @classmethod
    def behind_commit(cls, operations: Sequence[Self]) -> Iterable[Call]:
        """Statements that read the written rows, after all locks are released; they may return no rows."""
        return ()

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        """Sets the results after the commit, and updates this process's own state."""
        raise NotImplementedError

    def stored(self, segment_id: int) -> Iterable[MessageRow]:
        """The messages that the operation has stored, if this process has their content; called after `settle`."""
        return (row for part in self.parts for row in part.stored(segment_id))

    def resolve(self, problem: Exception | None = None) -> None:
        """Answers the caller that waits for the pipelined batch, unless it no longer waits."""
        if self._is_resolved or (self._future is not None and self._future.done()):
            return
        self._is_resolved = True
        if problem is not None and self.may_be_elsewhere(problem):
            # The operation then counts as left out, so that `finish` asks the other cells.
            problem = None
        if self.settled is not None:
            # `settled` refers to this operation: without this line only the garbage collector would free both.
            settled, self.settled = self.settled, None
            if self._future is not None:
                self._future.set_result(self.result)
            settled(problem)
        elif problem is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(problem)


def outdated(operations: Iterable[Written], version: int) -> list[Written]:
    """The operations whose cell was found by an older version of the map than `version`."""
    return [one for one in operations if one.version is not None and one.version < version]


def answer(operations: Sequence[Pipelined[Any]], problem: Exception | None = None) -> None:
    """Answers the callers of these operations, each with its result or refusal."""
    for operation in operations:
        operation.resolve(problem)


def by_class(operations: Sequence[Operation[Any]]) -> list[tuple[type[Operation[Any]], list[Operation[Any]]]]:
    """The operations by their class. Every batch takes its locks in the same order of classes."""
    found: dict[type[Operation[Any]], list[Operation[Any]]] = {}
    for operation in operations:
        found.setdefault(type(operation), []).append(operation)
    return sorted(found.items(), key=lambda item: (item[0].ORDER, item[0].__name__))


# Writes one more row about an operation; called after its result or refusal is known and before the commit.
Note = Callable[[Batch, Operation[Any]], None]


async def write_steps(batch: Batch, work: Sequence[tuple[type[Operation[Any]], list[Operation[Any]]]]) -> None:
    """Runs `write` of all classes in step: one statement appends all records, one enters all entries."""
    paused: list[AsyncGenerator[None, None]] = []
    try:
        for class_, operations in work:
            steps = class_.write(batch, operations)
            if isinstance(steps, AsyncGenerator):
                paused.append(steps)
                await anext(steps, None)
            else:
                await steps
        if batch.records:
            await log.append(batch.connection, batch.segment_id, batch.records)
        for steps in paused:
            await anext(steps, None)
        await batch.write_rows()
        if batch.entries:
            await queues.enqueue(batch.connection, batch.segment_id, batch.entries)
        for steps in paused:
            await anext(steps, None)
    finally:
        for steps in paused:
            await steps.aclose()
