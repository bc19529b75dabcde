"""Bulk: many calls in one request, in order, each with its own result. SDKs use it to send calls together."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from access.callers import Caller
from delivery.receipts import given as given_handles
from mqbroker.api.answers import Answer, of_problem, refused, with_status
from mqbroker.api.bulk_operations import (
    OF_GROUPS,
    AckOperation,
    EndOperation,
    Given,
    HalfOperation,
    Read,
    SendOperation,
    Source,
    ids_of,
    operation_of,
    read_all,
)
from mqbroker.api.operations import Call, rest_of
from mqbroker.api.requests import DataRequest
from scheduling import delays
from store import messages
from store.commit import writer
from store.commit.operation import Operation, Pipelined
from store.db import patience
from store.errors import MessageIllegal, Refusal, SystemBusy
from store.messages import Message, accept, unpacking
from store.naming import topics
from transactions import undecided_limits

MAX_OPERATIONS = 1000
# The most receipt handles in all acks of a bulk: each handle has a result of some 300 bytes, which takes 5 µs.
MAX_HANDLES = 32 * given_handles.MAX_HANDLES
HANDLES_AT_ONCE = 2 * given_handles.MAX_HANDLES
# The longest time of adding operations without a pause.
BREAK_SECONDS = 0.004
# A key needs a scope with one of these verbs for a bulk; each operation also needs the scope of its call.
VERBS = ("produce", "consume", "manage")
# The shapes of the items that may name a topic.
NAMING = (Message, EndOperation)
TOO_LATE = refused(SystemBusy("The database does not answer: nothing was stored, try again.")).content


async def bulk(request: DataRequest) -> Answer:
    """POST /v1/bulk."""
    # The right is checked here too: the result is the same whether or not the body arrived in one piece with its head.
    request.caller.require_any(*VERBS)
    return Answer(b'{"results":[%s]}' % b",".join(await _results(request)))


async def _results(request: DataRequest) -> list[bytes]:
    """The result of each operation, in order. Two operations with the same id keep their order: a half message is
    stored before its end is decided, and of two messages with the same id the first is stored. Raises MessageIllegal if
    there are no operations or too many.
    """
    read = await read_all(request)
    if not 1 <= len(read) <= MAX_OPERATIONS:
        raise MessageIllegal(f"operations has {len(read)} operations: give 1 to {MAX_OPERATIONS}.")
    if (handles := sum(_handles_of(read))) > MAX_HANDLES:
        raise MessageIllegal(f"The acks of the bulk have {handles} receipt_handles: give {MAX_HANDLES} at most.")
    unpacking.begin_many()
    until = time.monotonic() + patience.REQUEST_SECONDS
    await _warm([one.given for one in read], request.caller)
    results: dict[int, bytes] = {}
    left: Sequence[Read] = read
    while left and not patience.current().is_over and time.monotonic() < until:
        now, later = _apart(left)
        first, rest = _few_handles(now)
        left = [*rest, *later] if rest else later
        results |= await _run(first, request)
    return [results.get(number, TOO_LATE) for number in range(len(read))]


async def _warm(given: list[Given | Refusal], caller: Caller) -> None:
    """Looks topics and groups up first, so that the operations need not wait and reach the group commit in order.

    For sends this is done only if the caller may produce to the topic, because looking a missing topic up creates it.
    For an invalid send no topic is created.
    """
    named = {operation.topic for operation in given if isinstance(operation, NAMING)}
    for name in named:
        if name is not None:
            await topics.look_up(name)
    sent_to: set[str] = set()
    for operation in given:
        if isinstance(operation, SendOperation) and operation.topic not in sent_to and _obeys(operation, caller):
            sent_to.add(operation.topic)
            with contextlib.suppress(Refusal):
                chosen = [] if operation.message_id is None else [operation.message_id]
                await accept.for_messages(operation.topic, None, chosen)
    of_groups = [one for one in given if isinstance(one, OF_GROUPS)]
    halves_to = {(one.producer_group, one.topic if isinstance(one, HalfOperation) else "") for one in of_groups}
    for name, topic in halves_to:
        with contextlib.suppress(Refusal):
            await undecided_limits.look_up(name, topic)


def _obeys(operation: SendOperation, caller: Caller) -> bool:
    """Whether a send is certainly valid.

    False if the send has a queue, a delay or compression, which must be checked first.
    """
    if operation.queue_id is not None or operation.compression or not caller.may("produce", operation.topic):
        return False
    try:
        messages.checked(operation)
    except Refusal:
        return False
    return delays.of_message(operation) is None


def _apart(read: Sequence[Read]) -> tuple[Sequence[Read], Sequence[Read]]:
    """Splits the operations: the operations whose ids occur for the first time, and the operations that must wait for
    an earlier operation with the same id.
    """
    named = [id_ for one in read for id_ in ids_of(one.given) if id_ is not None]
    if len(set(named)) == len(named):
        # In almost every bulk all ids are different.
        return read, ()
    seen: set[uuid.UUID | None] = set()
    now: list[Read] = []
    later: list[Read] = []
    for one in read:
        ids = ids_of(one.given)
        (now if seen.isdisjoint(ids) else later).append(one)
        seen.update(ids)
        seen.discard(None)
    return now, later


def _few_handles(read: Sequence[Read]) -> tuple[Sequence[Read], Sequence[Read]]:
    """The first operations, whose receipt handles are settled together, and the others."""
    of_acks = _handles_of(read)
    if sum(of_acks) <= HANDLES_AT_ONCE:
        return read, ()
    handles = 0
    for number, of_one in enumerate(of_acks):
        handles += of_one
        if number and handles > HANDLES_AT_ONCE:
            return read[:number], read[number:]
    return read, ()


def _handles_of(read: Sequence[Read]) -> list[int]:
    """The number of receipt handles of each operation."""
    return [len(one.given.receipt_handles) if isinstance(one.given, AckOperation) else 0 for one in read]


async def _run(read: Sequence[Read], request: DataRequest) -> dict[int, bytes]:
    """The results of operations that need not wait for each other, by number.

    Operations for pipelined batches are handed in at once, because a task for each operation would cost as much CPU as
    writing the operation.
    """
    results: dict[int, bytes] = {}
    handed = Handed(results)
    tasks: list[tuple[int, asyncio.Task[bytes]]] = []
    shared = Source(request.caller, request.traceparent, 0)
    break_at = time.monotonic() + BREAK_SECONDS
    for one in read:
        if time.monotonic() > break_at:
            await asyncio.sleep(0)
            break_at = time.monotonic() + BREAK_SECONDS
        try:
            call, operation = operation_of(one, shared)
            is_ready = operation.ready()
            if is_ready and not operation.ordered:
                handed.hand_in(one.number, call, operation)
            else:
                # Ordered operations are handed in by their own tasks.
                rest = rest_of(operation, is_ready=is_ready)
                tasks.append((one.number, asyncio.create_task(_result(call, operation, rest))))
        except Refusal as refusal:
            results[one.number] = refused(refusal).content
    for number, call, operation in await handed.unwritten():
        tasks.append((number, asyncio.create_task(_result(call, operation, writer.finish(operation)))))
    for number, task in tasks:
        results[number] = await task
    return results


class Handed:
    """The operations of a bulk in pipelined batches. `results` has the results from batches that have ended."""

    def __init__(self, results: dict[int, bytes]) -> None:
        self._results = results
        self._under_way = 0
        self._unwritten: list[tuple[int, Call[Any, Any], Pipelined[Any]]] = []
        # One future for all operations: a future for each would cost as much CPU as writing the operation.
        self._ended: asyncio.Future[None] | None = None

    def hand_in(self, number: int, call: Call[Any, Any], operation: Pipelined[Any]) -> None:
        """Adds an operation to a batch, which writes it. Raises SystemBusy when too much waits."""
        writer.hand_in(operation, partial(self._settled, number, call, operation))
        self._under_way += 1

    def _settled(self, number: int, call: Call[Any, Any], operation: Pipelined[Any], problem: Exception | None) -> None:
        if problem is None and operation.result is None:
            self._unwritten.append((number, call, operation))
        else:
            self._results[number] = _answered(call, operation, problem)
        self._under_way -= 1
        if not self._under_way and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    async def unwritten(self) -> Sequence[tuple[int, Call[Any, Any], Pipelined[Any]]]:
        """The operations that the batches have left out, after all batches have ended."""
        if self._under_way:
            self._ended = asyncio.get_running_loop().create_future()
            await self._ended
        return self._unwritten


async def _result(call: Call[Any, Any], operation: Operation[Any], rest: Coroutine[Any, Any, object]) -> bytes:
    """The JSON result of an operation, after `rest`, the coroutine of its remaining steps, was awaited."""
    problem: Exception | None = None
    try:
        await rest
    except Exception as raised:  # noqa: BLE001  # the problem is answered like any other
        problem = raised
    return _answered(call, operation, problem)


def _answered(call: Call[Any, Any], operation: Operation[Any], problem: Exception | None) -> bytes:
    """The JSON result of an operation that was written, or of the problem that it met."""
    try:
        if problem is not None:
            raise problem
        return with_status(*call.answered(operation))
    except Exception as raised:  # noqa: BLE001  # the problem is answered, and a failure logged
        return of_problem(raised).content
