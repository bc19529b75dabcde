"""Traces: all kept rows about one message, from its store to each consumer group's ack or dead letter."""

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from delivery import trace as delivery_trace
from delivery.trace import GroupEventName, Standing, TraceGroup
from scheduling import trace as scheduling_trace
from scheduling.trace import Entry, Wait, Way
from store.messages import Time
from store.naming import topic_names
from store.naming.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX, group_of
from store.reading import holders
from store.rows import Copy
from transactions.errors import TransactionNotFound
from transactions.reads import history
from transactions.results import EventOf, TransactionEventName, TransactionHistory

# The reads of a trace are repeated until no entry appears during a read, at most this many times.
MAX_READS = 4

EventName = Literal[TransactionEventName, GroupEventName, "stored", "delayed", "visible", "retry", "dead_letter"]


class TraceEvent(EventOf[EventName], kw_only=True):
    """An event of a message, proved by a kept row.

    The names: stored; prepared, check, end, discard and resume of its transaction; delayed, visible, retry, dead_letter
    and redriven; received when a row proves a delivery, else passed; nack with a reason. The other fields depend on the
    event.
    """

    commit_log_offset: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    queue_id: int | UnsetType = UNSET
    queue_offset: int | UnsetType = UNSET
    deliver_at: Time | UnsetType | None = UNSET
    delay_level: int | UnsetType = UNSET
    group: str | UnsetType = UNSET
    delivery_attempt: int | UnsetType = UNSET
    reconsume_times: int | UnsetType = UNSET


class TraceWait(msgspec.Struct):
    """An unfinished delay, at a delay level or in a timer."""

    topic: str
    deliver_at: Time
    delay_level: int | UnsetType = UNSET


State = Literal["PREPARED", "ROLLED_BACK", "DISCARDED", "DELAYED", "VISIBLE", "RECALLED", "INVISIBLE"]


class Trace(msgspec.Struct):
    """The kept events of a message, in the order of time.

    INVISIBLE: the message has no entry and does not wait, because its timer was recalled or retention dropped its
    entries.
    """

    message_id: uuid.UUID
    topic: str
    queue_id: int
    state: State
    events: list[TraceEvent]
    waits: list[TraceWait]
    groups: list[TraceGroup]
    transaction_id: uuid.UUID | UnsetType = UNSET
    producer_group: str | UnsetType = UNSET


async def of(message_id: uuid.UUID, copies: Sequence[Copy]) -> Trace:
    """The trace of a message whose copies lie at these log positions.

    1. Read the history of its transaction, if it has one.
    2. Read its entries and delays, and its standing in each consumer group, until no entry appeared during the reads.
    3. Sort the events by time, and derive the state of the message.
    """
    first = copies[0]
    transaction = await _transaction(first.transaction_id)
    async with holders.of_message(message_id):
        way, names, standings = await _settled(message_id, copies)
    events = [
        TraceEvent(event="stored", at=first.stored_at, commit_log_offset=first.log_offset),
        *(TraceEvent(**msgspec.structs.asdict(event)) for event in (transaction.history if transaction else ())),
        *(_entered(entry, names) for entry in way.entries),
        *(msgspec.convert(event, TraceEvent) for one in standings for event in delivery_trace.events(one)),
    ]
    return Trace(
        message_id=message_id,
        topic=names[first.topic_id],
        queue_id=first.queue_id,
        state=_state(first.topic_id, transaction.state if transaction else None, way),
        events=_in_order(events, first.topic_id, way),
        waits=[_waiting(wait, names) for wait in way.waits],
        groups=[delivery_trace.shown(standing) for standing in standings],
        transaction_id=UNSET if transaction is None or first.transaction_id is None else first.transaction_id,
        producer_group=transaction.producer_group if transaction else UNSET,
    )


async def _transaction(transaction_id: uuid.UUID | None) -> TransactionHistory | None:
    if transaction_id is None:
        return None
    try:
        return await history.of(transaction_id)
    except TransactionNotFound:
        # The message was reappended, but the segment of its transaction was dropped.
        return None


async def _settled(message_id: uuid.UUID, copies: Sequence[Copy]) -> tuple[Way, dict[int, str], list[Standing]]:
    offsets = [copy.log_offset for copy in copies]
    way = await scheduling_trace.of(offsets)
    for _ in range(MAX_READS):
        names = await _names(copies[0].topic_id, way)
        standings = await delivery_trace.of(message_id, way, names)
        before, way = way, await scheduling_trace.of(offsets)
        if way == before:
            break
    return before, names, standings


async def _names(topic_id: int, way: Way) -> dict[int, str]:
    ids = {topic_id, *(wait.topic_id for wait in way.waits)}
    for entry in way.entries:
        ids |= {entry.topic_id, entry.topic_id if entry.goes_to is None else entry.goes_to}
    return await topic_names.of_ids(ids)


def _state(topic_id: int, transaction_state: State | Literal["COMMITTED"] | None, way: Way) -> State:
    if any(entry.topic_id == topic_id for entry in way.entries):
        return "VISIBLE"
    if transaction_state is not None and transaction_state != "COMMITTED":
        return transaction_state
    if any(wait.topic_id == topic_id for wait in way.waits):
        return "DELAYED"
    return "RECALLED" if any(entry.goes_to == topic_id for entry in way.entries) else "INVISIBLE"


def _in_order(events: Iterable[TraceEvent], topic_id: int, way: Way) -> list[TraceEvent]:
    """The events by time, except that a commit comes before its entries, although it is recorded just after them."""
    visible_at = [entry.entered_at for entry in way.entries if topic_id in (entry.topic_id, entry.goes_to)]

    def moment(event: TraceEvent) -> datetime:
        made_entries = event.event == "end" and event.state == "COMMIT"
        return min(event.at, *visible_at) if made_entries and visible_at else event.at

    return sorted(events, key=moment)


def _entered(entry: Entry, names: dict[int, str]) -> TraceEvent:
    """The event of an entry: its meaning depends on the kind of its topic."""
    topic, at = names[entry.topic_id], entry.entered_at
    if entry.goes_to is not None:
        return TraceEvent(
            event="delayed",
            at=at,
            topic=names[entry.goes_to],
            deliver_at=entry.deliver_at,
            delay_level=UNSET if entry.level is None else entry.level,
        )
    event = TraceEvent(event="visible", at=at, queue_id=entry.queue_id, queue_offset=entry.queue_offset)
    if entry.deliver_at is not None:
        event.deliver_at = entry.deliver_at
    if (group := group_of(topic, RETRY_PREFIX)) is not None:
        event.event = "retry"
        event.group, event.delivery_attempt = group, entry.reconsume_times + 1
    elif (group := group_of(topic, DEAD_LETTER_PREFIX)) is not None:
        event.event = "dead_letter"
        event.group, event.reconsume_times = group, entry.reconsume_times
    else:
        event.topic = topic
    return event


def _waiting(wait: Wait, names: dict[int, str]) -> TraceWait:
    return TraceWait(names[wait.topic_id], wait.deliver_at, UNSET if wait.level is None else wait.level)
