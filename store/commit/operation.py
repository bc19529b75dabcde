"""An operation of the message path: one class, which holds all that is true of it, from its call to its result.

Two writers write it. The *pipelined* one sends the `statements` of all operations of a batch in one round trip; they
leave out what they cannot write, and give no reason. The *stepwise* one writes what was left out, and operations that
have no statements of this kind: `write` sees what it finds, and sets a result or the refusal that says why not.
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
# Takes the problem of an operation that has one, or None; raises nothing.
Settled = Callable[[Exception | None], None]
# A class is written stepwise straight on, or with a pause in which log offsets are assigned, and one for queue offsets.
Steps = Coroutine[Any, Any, None] | AsyncGenerator[None, None]


class Operation(Generic[Result]):
    """What a caller wants written, and what became of it.

    `result` stays None while it is not written, or when a pipelined batch left it out; `refusal` says why it was not.
    No batch has two operations of one `key`, and those of one key keep their order; an empty key is no key. `ids` are
    those that a pipelined batch has once: the key, and the ids of messages that another operation may bring, too. The
    class methods see all operations of their class in a batch at once.
    """

    __slots__ = (
        "_future",
        "_is_resolved",
        "before",
        "cell",
        "ids",
        "is_plain",
        "joined",
        "key",
        "ordered",
        "refusal",
        "result",
        "settled",
        "size",
        "version",
    )

    # The operations of a lane share writers, and so their batches; those of another lane keep no order with them.
    LANE: ClassVar[str] = "log"
    # Where the statements of this class stand in a batch.
    ORDER: ClassVar[int] = 0
    # Goes before those that are not, so that under load the backlog drains.
    URGENT: ClassVar[bool] = False
    # Whether its caller has a read: a refusal behind its commit says nothing of what was stored.
    IS_READ: ClassVar[bool] = False

    def __init__(self, key: bytes = b"") -> None:
        self.key = key
        self.ids: tuple[bytes, ...] = (key,)
        # Bytes, by `accept.size_of`.
        self.size = 0
        # That whose writer takes it, known once it is complete; None for that of the task which has it written.
        self.cell: int | None = None
        # Of the map by which its cell was found; None for one that no topic has led there.
        self.version: int | None = None
        # Whether pipelined batches take it at all, once everything is known.
        self.is_plain = False
        # No later batch may overtake it: a batch that is sent again would come behind the next one.
        self.ordered = False
        self.result: Result | None = None
        self.refusal: Refusal | None = None
        self.joined: Joined | None = None  # of a read, in the batch of another lane
        # What it changed, as it was, for the audit.
        self.before: object = None
        self._is_resolved = False
        # Called in place of a waiter, in the turn of the event loop in which the result is read.
        self.settled: Settled | None = None
        self._future: asyncio.Future[Result | None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether nothing waits for its pipelined batch: it is resolved, or its waiter was cancelled."""
        return self._is_resolved or (self._future is not None and self._future.done())

    @property
    def future(self) -> asyncio.Future[Result | None]:
        """Done once its pipelined batch is. Made at its first use: almost no operation needs it."""
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        return self._future

    @property
    def overtakes(self) -> bool:
        """Whether one that is `ordered` must be written stepwise: it would come before an earlier one that still is."""
        return False

    # Before it is written.

    def ready(self) -> bool:
        """Whether a pipelined batch can take it at once: everything is known in this process. Raises its refusal."""
        return False

    async def complete(self) -> None:
        """Looks up what `ready` did not find, and whether the caller may. Raises the refusal.

        Topics and groups are made at their first use. Where nothing is to be written, the result is set.
        """

    async def renew(self, refusal: Refusal) -> bool:
        """Looks up anew what this process remembered, where a refusal may come of that; whether it found a change."""
        return False

    def detour(self) -> AbstractContextManager[None]:
        """Entered while it is written stepwise, without an await before: later operations may have to follow it."""
        return nullcontext()

    def written_topics(self) -> Mapping[int, str]:
        """The names of the topics that it writes messages to, by their ids, where they are known before."""
        return {}

    def may_be_elsewhere(self, problem: Exception) -> bool:
        """Whether another cell may have what this one, for this problem, did not find."""
        return False

    # In a pipelined batch.

    @classmethod
    def before_locks(cls, operations: Sequence[Self]) -> Iterable[Call]:
        """Statements that name queues for the lock, in the register `mq.ending`."""
        return ()

    @classmethod
    def queues(cls, operations: Sequence[Self]) -> Iterable[tuple[int, int]]:
        """The queues, as topic and number, that the operations extend, as far as this process can tell."""
        return ()

    @classmethod
    def further_locks(cls, operations: Sequence[Self], only_free: bytes) -> Iterable[Call]:
        """Statements that lock more than log and queues; with `only_free` they pass over what is locked elsewhere."""
        return ()

    @classmethod
    def statements(cls, operations: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        """The statements that write the operations, under the locks."""
        raise NotImplementedError

    @classmethod
    def behind_commit(cls, operations: Sequence[Self]) -> Iterable[Call]:
        """Statements that read what was written, with no lock held any more; `settle` may have no answers of them."""
        return ()

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        """After the commit: sets the results, and does what is to follow in this process."""
        raise NotImplementedError

    def stored(self, segment_id: int) -> Iterable[MessageRow]:
        """After `settle`: the messages that it has stored, where this process has their content."""
        return ()

    def resolve(self, problem: Exception | None = None) -> None:
        """Answers the waiter for the pipelined batch, unless it has gone away."""
        if self._is_resolved or (self._future is not None and self._future.done()):
            return
        self._is_resolved = True
        if problem is not None and self.may_be_elsewhere(problem):
            # Left out: `finish` asks the other cells.
            problem = None
        if self.settled is not None:
            # It knows this operation: left in place it would make a circle, which waits for the garbage collector.
            settled, self.settled = self.settled, None
            if self._future is not None:
                self._future.set_result(self.result)
            settled(problem)
        elif problem is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(problem)

    # Stepwise.

    @classmethod
    def locks(cls, operations: Sequence[Self]) -> Iterable[int]:
        """Keys of advisory locks that a stepwise batch takes as it begins, in one message, of all classes in order."""
        return ()

    @classmethod
    def write(cls, batch: Batch, operations: Sequence[Self]) -> Steps:
        """Writes the operations within the transaction of a stepwise batch, each to its result or its refusal.

        A coroutine, or a generator that yields twice: the log offsets of the records in `batch` are known behind its
        first `yield`, the queue offsets of its entries behind the second. A batch may be done over: what an attempt
        finds belongs into the variables of this method.
        """
        raise NotImplementedError


def outdated(operations: Iterable[Operation[Any]], version: int) -> list[Operation[Any]]:
    """The operations that were routed by an older version of the map than this one."""
    return [one for one in operations if one.version is not None and one.version < version]


def answer(operations: Sequence[Operation[Any]], problem: Exception | None = None) -> None:
    """Answers the callers of these operations, each as it stands."""
    for operation in operations:
        operation.resolve(problem)


def by_class(operations: Sequence[Operation[Any]]) -> list[tuple[type[Operation[Any]], list[Operation[Any]]]]:
    """The operations by their class. Every batch takes its locks in the same order of classes."""
    found: dict[type[Operation[Any]], list[Operation[Any]]] = {}
    for operation in operations:
        found.setdefault(type(operation), []).append(operation)
    return sorted(found.items(), key=lambda item: (item[0].ORDER, item[0].__name__))


# Writes a row about an operation beside what its class writes; called once its result or refusal is known, before the
# commit.
Note = Callable[[Batch, Operation[Any]], None]


async def write_steps(batch: Batch, work: Sequence[tuple[type[Operation[Any]], list[Operation[Any]]]]) -> None:
    """Has the classes of a batch write side by side: all records are appended at once, and all entries entered."""
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
