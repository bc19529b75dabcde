"""Stores the rows of an outbox as messages: rows of one sharding key in their order, others side by side."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TypeVar

import psycopg
import structlog

from access.callers import Caller
from outboxes import reading
from outboxes.rows import Refused, Row
from sending.batches import BatchedMessage, SendBatch
from sending.send import Send
from store.commit import writer
from store.errors import NoPermission, OutcomeUnknown, Refusal, SystemBusy
from store.messages import Message
from store.naming import topics

logger = structlog.stdlib.get_logger(__name__)

Shape = TypeVar("Shape", bound=Message)
# Rows without a key are stored in batches of this size, each of which goes to a queue of its own.
BATCH_ROWS = 64
# Nothing is wrong with the rows: they are taken again later.
LATER = (SystemBusy, OutcomeUnknown)
# What the content of a row makes a database raise: a character, a number, a size.
OF_CONTENT = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded, psycopg.errors.InternalError_)
# Of a reason: the rest would be the row itself.
REASON_CHARACTERS = 500


async def store(rows: Sequence[Row], caller: Caller) -> list[Refused]:
    """Stores the rows, each under its id, and returns those that are refused.

    A row that is stored already is not stored again. Raises SystemBusy or OutcomeUnknown where some may not be stored.
    """
    found = await asyncio.gather(*(_store_chain(chain, caller) for chain in chains(rows)), return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [refused for one in found if isinstance(one, list) for refused in one]


def chains(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows by topic and sharding key, in their order; those without a key in parts."""
    by_key: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.seq):
        by_key.setdefault((row.topic, row.sharding_key), []).append(row)
    for (_, key), chain in by_key.items():
        size = len(chain) if key is not None else BATCH_ROWS
        for first in range(0, len(chain), size):
            yield chain[first : first + size]


async def _store_chain(chain: Sequence[Row], caller: Caller) -> list[Refused]:
    """Stores rows one behind the other: runs of what a batch may hold as batches."""
    refused: list[Refused] = []
    for run in runs(chain):
        if len(run) > 1 and await _try_to_send(run, caller) is None:
            continue
        # One of several is refused: by themselves it is found which.
        for row in run:
            problem = await _try_to_send([row], caller)
            if problem is not None:
                refused.append(Refused(row.slot, row.seq, reason_of(problem)))
    return refused


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
    """Sends rows together, and returns the problem that is one of theirs. Raises any other: all rows wait then."""
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
    if not caller.may("produce", topic):
        raise NoPermission(f"topic {topic[:140]!r} is none of those that the outbox may send to: PUT it to its topics.")
    if len(run) == 1:
        [row] = run
        return Send(reading.message_of(row, Message), reading.traceparent_of(row), caller)
    batch = SendBatch(topic=topic, messages=[reading.message_of(row, BatchedMessage) for row in run])
    return Send(batch, None, caller)


def _is_of_rows(problem: Exception) -> bool:
    """Whether a row is the reason, whatever it is: nothing behind it must wait for it. Else a database is away."""
    if isinstance(problem, psycopg.Error):
        return isinstance(problem, OF_CONTENT)
    return not isinstance(problem, (*LATER, OSError, MemoryError))


def reason_of(problem: Exception) -> str:
    """Why a row is set apart."""
    if isinstance(problem, Refusal):
        return f"{problem.code}: {problem.detail}"[:REASON_CHARACTERS]
    logger.warning("a row of an outbox is set apart", problem=type(problem).__name__)
    return f"message_illegal: {' '.join(str(problem).split())} ({type(problem).__name__})"[:REASON_CHARACTERS]
