"""Stores the rows of an outbox as messages: rows of one sharding key in their order, others side by side."""

import asyncio
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import psycopg
import structlog

from access import key_limits
from access.callers import Caller
from scheduling.sending.batches import BatchedMessage, SendBatch
from scheduling.sending.send import Send
from store.commit import writer
from store.errors import NoPermission, OutcomeUnknown, Refusal, SystemBusy
from store.messages import Message
from store.naming import topics
from transactions.outboxes import reading
from transactions.outboxes.rows import Refused, Row

logger = structlog.stdlib.get_logger(__name__)

Shape = TypeVar("Shape", bound=Message)
# Rows without a key are stored in batches of this size, each of which goes to a queue of its own.
BATCH_ROWS = 64
# The broker itself cannot store anything now, or may have.
BUSY = (SystemBusy, OutcomeUnknown)
# What the content of a row makes a database raise: a character, a number, a size.
OF_CONTENT = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded, psycopg.errors.InternalError_)
# Of a reason: the rest would be the row itself.
REASON_CHARACTERS = 500


class Left(NamedTuple):
    """The rows that are not stored: refused for good, or for now. Those wait, with the refusal of their topic."""

    refused: Sequence[Refused] = ()
    waiting: Sequence[Row] = ()
    reasons: Mapping[str, Refusal] = {}


async def store(rows: Sequence[Row], caller: Caller) -> Left:
    """Stores the rows, each under its id, and returns the others. A row that is stored already is not stored again.

    Raises SystemBusy or OutcomeUnknown where none is stored or refused for that reason.
    """
    found = await asyncio.gather(*(_store_chain(chain, caller) for chain in chains(rows)), return_exceptions=True)
    lefts: list[Left] = []
    for one in found:
        if isinstance(one, BaseException):
            raise one
        lefts.append(one)
    left = Left(
        [refused for one in lefts for refused in one.refused],
        [row for one in lefts for row in one.waiting],
        {topic: reason for one in lefts for topic, reason in one.reasons.items()},
    )
    busy = [reason for reason in left.reasons.values() if isinstance(reason, BUSY)]
    if busy and len(left.waiting) == len(rows):
        raise busy[0]
    return left


def chains(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows by topic and sharding key, in their order; those without a key in parts."""
    by_key: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.seq):
        by_key.setdefault((row.topic, row.sharding_key), []).append(row)
    for (_, key), chain in by_key.items():
        size = len(chain) if key is not None else BATCH_ROWS
        for first in range(0, len(chain), size):
            yield chain[first : first + size]


async def _store_chain(chain: Sequence[Row], caller: Caller) -> Left:
    """Stores rows one behind the other: runs of what a batch may hold as batches. Those behind one that waits wait."""
    topic = chain[0].topic or ""
    # A namespace's limits are those of all that is sent to its topics.
    caller = dataclasses.replace(caller, allowance=await key_limits.of_topic(topic))
    refused: list[Refused] = []
    done = 0
    for run in runs(chain):
        problem = await _try_to_send(run, caller)
        # One of several is refused: by themselves it is found which.
        parts = [run] if problem is None or _is_for_now(problem) or len(run) == 1 else [[row] for row in run]
        for part in parts:
            if part is not run:
                problem = await _try_to_send(part, caller)
            if isinstance(problem, Refusal) and problem.is_for_now:
                return Left(refused, chain[done:], {topic: problem})
            if problem is not None:
                refused.append(Refused(part[0].slot, part[0].seq, reason_of(problem)))
            done += len(part)
    return Left(refused)


def _is_for_now(problem: Exception) -> bool:
    return isinstance(problem, Refusal) and problem.is_for_now


def runs(chain: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows in parts, each of such as a batch may hold, or of one that it may not."""
    run: list[Row] = []
    for row in chain:
        if is_plain(row):
            run.append(row)
            continue
        if run:
            yield run
        yield [row]
        run = []
    if run:
        yield run


def is_plain(row: Row) -> bool:
    """Whether a batch may hold it: it is visible at once, and of no trace of its own."""
    waits = row.delay_level, row.delay_seconds, row.deliver_at, row.traceparent
    return all(value is None for value in waits) and not topics.is_system(row.topic or "")


async def _try_to_send(run: Sequence[Row], caller: Caller) -> Exception | None:
    """Sends rows together, and returns the problem that is one of theirs, or of their topic. Raises any other: all rows
    wait then.
    """
    try:
        await writer.run(_send_of(run, caller))
    except Exception as problem:
        if _is_of_rows(problem):
            return problem
        raise
    return None


def _send_of(run: Sequence[Row], caller: Caller) -> Send:
    """Raises what reading a row raises, and NoPermission for a topic that is none of the outbox's."""
    topic = run[0].topic or ""
    size = sum(len(text) for row in run for text in row if isinstance(text, str | bytes))
    if not caller.may("produce", topic):
        raise NoPermission(f"topic {topic[:140]!r} is none of those that the outbox may send to: PUT it to its topics.")
    if len(run) == 1:
        [row] = run
        return Send(reading.message_of(row, Message), reading.traceparent_of(row), caller, size)
    batch = SendBatch(topic=topic, messages=[reading.message_of(row, BatchedMessage) for row in run])
    return Send(batch, None, caller, size)


def _is_of_rows(problem: Exception) -> bool:
    """Whether a row is the reason, whatever it is: nothing behind it must wait for it. Else a database is away."""
    if isinstance(problem, psycopg.Error):
        return isinstance(problem, OF_CONTENT)
    return not isinstance(problem, OSError | MemoryError)


def reason_of(problem: Exception) -> str:
    """Why a row is set apart."""
    if isinstance(problem, Refusal):
        return f"{problem.code}: {problem.detail}"[:REASON_CHARACTERS]
    logger.warning("a row of an outbox is set apart", problem=type(problem).__name__)
    return f"message_illegal: {' '.join(str(problem).split())} ({type(problem).__name__})"[:REASON_CHARACTERS]
