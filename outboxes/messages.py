"""Stores the rows of an outbox as messages: rows of one sharding key in their order, others side by side."""

import asyncio
import base64
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from access.callers import Caller
from outboxes.source import Row
from sending.batches import BatchedMessage, SendBatch
from sending.send import Send
from store.commit import writer
from store.errors import MessageIllegal, OutcomeUnknown, Refusal, SystemBusy
from store.messages import Message
from store.naming import topics

Shape = TypeVar("Shape", bound=Message)
# Rows without a key are stored in batches of this size, each of which goes to a queue of its own.
BATCH_ROWS = 64
# Nothing is wrong with the rows: they are taken again later.
LATER = (SystemBusy, OutcomeUnknown)


class Refused(NamedTuple):
    """A row that no message can be made of, and why."""

    row: Row
    reason: str


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
    by_key: dict[tuple[str, str | None], list[Row]] = {}
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
        if len(run) > 1:
            try:
                await _send(
                    SendBatch(topic=run[0].topic, messages=[message_of(row, BatchedMessage) for row in run]),
                    None,
                    caller,
                )
                continue
            except LATER:
                raise
            except Refusal:
                pass  # One of them is refused: by themselves it is found which.
        for row in run:
            try:
                await _send(message_of(row, Message), row.traceparent, caller)
            except LATER:
                raise
            except Refusal as refusal:
                refused.append(Refused(row, f"{refusal.code}: {refusal.detail}"))
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
    return all(value is None for value in waits) and not topics.is_system(row.topic)


async def _send(given: Message | SendBatch, traceparent: str | None, caller: Caller) -> None:
    await writer.run(Send(given, traceparent, caller))


def message_of(row: Row, shape: type[Shape]) -> Shape:
    """A row as a message, checked as what comes by HTTP is. Raises MessageIllegal."""
    body = row.body if row.body_bytes is None else None
    try:
        properties = None if row.properties is None else json.loads(row.properties)
    except RecursionError:
        raise MessageIllegal("properties is nested too deep: give an object of texts.") from None
    found = {
        "topic": row.topic,
        "body": body,
        "body_base64": None if row.body_bytes is None else base64.b64encode(row.body_bytes).decode(),
        "message_id": row.id,
        "tags": row.tags,
        "keys": row.keys,
        "sharding_key": row.sharding_key,
        "properties": properties,
        "delay_level": row.delay_level,
        "delay_seconds": row.delay_seconds,
        "deliver_at": row.deliver_at,
        "born_at": row.created_at,
    }
    try:
        return msgspec.convert({name: value for name, value in found.items() if value is not None}, shape)
    except msgspec.ValidationError as problem:
        raise MessageIllegal(f"{problem}.") from None
