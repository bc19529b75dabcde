"""Stores the rows of an outbox as messages: rows of one sharding key in order, other rows at the same time."""

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
# Rows without a sharding key are stored in batches of this size, each in the next queue.
BATCH_ROWS = 64
# Refusals that do not concern a row: the broker cannot store now, or does not know whether it has stored.
BUSY = (SystemBusy, OutcomeUnknown)
# Errors of a database about the content of a row: a character, a number, a size.
OF_CONTENT = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded, psycopg.errors.InternalError_)
# The most characters of a reason; a longer reason quotes the row itself.
REASON_CHARACTERS = 500


class Left(NamedTuple):
    """The rows of a turn that were not stored. `refused`: refused for good. `waiting`: rows that are tried again.
    `reasons`: the refusal of each topic for which rows wait.
    """

    refused: Sequence[Refused] = ()
    waiting: Sequence[Row] = ()
    reasons: Mapping[str, Refusal] = {}


async def store(rows: Sequence[Row], caller: Caller) -> Left:
    """Stores the rows, each under its id, and returns the rows that were not stored. A stored row is not stored again.

    Raises SystemBusy or OutcomeUnknown if no row can be stored or refused now.
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
    """The rows in groups of one topic and sharding key, each in order; rows without a key in groups of BATCH_ROWS."""
    by_key: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.seq):
        by_key.setdefault((row.topic, row.sharding_key), []).append(row)
    for (_, key), chain in by_key.items():
        size = len(chain) if key is not None else BATCH_ROWS
        for first in range(0, len(chain), size):
            yield chain[first : first + size]


async def _store_chain(chain: Sequence[Row], caller: Caller) -> Left:
    """Stores rows in order, neighbouring plain rows (`is_plain`) as batches. Rows behind a waiting row wait too."""
    topic = chain[0].topic or ""
    # The rows also count for the limits of their topic's namespace.
    caller = dataclasses.replace(caller, allowance=await key_limits.of_topic(topic))
    refused: list[Refused] = []
    done = 0
    for run in runs(chain):
        problem = await _try_to_send(run, caller)
        # A row of several is refused: the rows are sent one by one, to find the refused row.
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
    """The rows in parts: each part has neighbouring plain rows (`is_plain`), or one row that is not plain."""
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
    """Whether a row may be part of a batch: it is not delayed and has no trace context."""
    waits = row.delay_level, row.delay_seconds, row.deliver_at, row.traceparent
    return all(value is None for value in waits) and not topics.is_system(row.topic or "")


async def _try_to_send(run: Sequence[Row], caller: Caller) -> Exception | None:
    """Sends rows together.

    Returns an error that the rows or their topic cause; raises any other error, after which all rows wait.
    """
    try:
        await writer.run(_send_of(run, caller))
    except Exception as problem:
        if _is_of_rows(problem):
            return problem
        raise
    return None


def _send_of(run: Sequence[Row], caller: Caller) -> Send:
    """The send of these rows. Raises the errors of `message_of`, and NoPermission for a topic that the outbox may not
    use.
    """
    topic = run[0].topic or ""
    size = sum(len(text) for row in run for text in row if isinstance(text, str | bytes))
    if not caller.may("produce", topic):
        raise NoPermission(
            f"topic {topic[:140]!r} is not among the topics of the outbox: add it to topics at PUT /v1/outboxes."
        )
    if len(run) == 1:
        [row] = run
        return Send(reading.message_of(row, Message), reading.traceparent_of(row), caller, size)
    batch = SendBatch(topic=topic, messages=[reading.message_of(row, BatchedMessage) for row in run])
    return Send(batch, None, caller, size)


def _is_of_rows(problem: Exception) -> bool:
    """Whether the rows cause the error, so that later rows need not wait. Otherwise a database is away."""
    if isinstance(problem, psycopg.Error):
        return isinstance(problem, OF_CONTENT)
    return not isinstance(problem, OSError | MemoryError)


def reason_of(problem: Exception) -> str:
    """The reason why a row is set apart, as text for the row's column."""
    if isinstance(problem, Refusal):
        return f"{problem.code}: {problem.detail}"[:REASON_CHARACTERS]
    logger.warning("a row of an outbox is set apart", problem=type(problem).__name__)
    return f"message_illegal: {' '.join(str(problem).split())} ({type(problem).__name__})"[:REASON_CHARACTERS]
