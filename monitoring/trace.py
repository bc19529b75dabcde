"""Traces: everything that is kept of one message's life, from its store to each consumer group's ack or dead letter."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from delivery import trace as delivery_trace
from delivery.trace import Standing
from scheduling import trace as scheduling_trace
from scheduling.trace import Entry, Way
from store import topics
from store.db.connections import Row
from store.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX
from transactions import history
from transactions.errors import TransactionNotFound

# What is read in several statements may change in between: it is read again until it does not.
MAX_LOOKS = 4


async def of(message_id: uuid.UUID, copies: Sequence[Row]) -> dict[str, Any]:
    """The trace of a message that lies at these places of the log: its state, its events in the order of time, what it
    waits for, and how each consumer group stands with it.

    An event is told only where a row proves it.
    """
    first = copies[0]
    transaction = await _transaction(first.transaction_id)
    way, names, found = await _settled(copies)
    events = [
        {"event": "stored", "at": first.stored_at, "commit_log_offset": first.log_offset},
        *(transaction["history"] if transaction else ()),
        *(_entered(entry, names) for entry in way.entries),
        *(event for standing in found for event in delivery_trace.events(standing)),
    ]
    trace: dict[str, Any] = {
        "message_id": message_id,
        "topic": names[first.topic_id],
        "queue_id": first.queue_id,
        "state": _state(first.topic_id, transaction, way),
    }
    if transaction:
        trace |= {"transaction_id": first.transaction_id, "producer_group": transaction["producer_group"]}
    return trace | {
        "events": _in_order(events, first.topic_id, way),
        "waits": [_waiting(wait, names) for wait in way.waits],
        "groups": [delivery_trace.shown(standing) for standing in found],
    }


async def _transaction(transaction_id: uuid.UUID | None) -> dict[str, Any] | None:
    if transaction_id is None:
        return None
    try:
        return await history.of(transaction_id)
    except TransactionNotFound:
        # A message that was needed for longer than its transaction's segment.
        return None


async def _settled(copies: Sequence[Row]) -> tuple[Way, dict[int, str], list[Standing]]:
    offsets = [copy.log_offset for copy in copies]
    way = await scheduling_trace.of(offsets)
    for _ in range(MAX_LOOKS):
        names = await _names(copies, way)
        found = await delivery_trace.of(way, names)
        before, way = way, await scheduling_trace.of(offsets)
        if way == before:
            break
    return before, names, found


async def _names(copies: Sequence[Row], way: Way) -> dict[int, str]:
    ids = {copies[0].topic_id, *(wait.topic_id for wait in way.waits)}
    for entry in way.entries:
        ids |= {entry.topic_id, entry.topic_id if entry.goes_to is None else entry.goes_to}
    return await topics.names(ids)


def _state(topic_id: int, transaction: dict[str, Any] | None, way: Way) -> str:
    """PREPARED, ROLLED_BACK, DISCARDED, DELAYED, VISIBLE, RECALLED, or INVISIBLE.

    The last one has no entry and waits for nothing: a timer that was recalled, or entries that retention has dropped.
    """
    if any(entry.topic_id == topic_id for entry in way.entries):
        return "VISIBLE"
    if transaction and transaction["state"] != "COMMITTED":
        return str(transaction["state"])
    if any(wait.topic_id == topic_id for wait in way.waits):
        return "DELAYED"
    return "RECALLED" if any(entry.goes_to == topic_id for entry in way.entries) else "INVISIBLE"


def _in_order(events: list[dict[str, Any]], topic_id: int, way: Way) -> list[dict[str, Any]]:
    """By time; but a commit comes before the entries it made, although it is noted a moment after them."""
    visible_at = [entry.entered_at for entry in way.entries if topic_id in (entry.topic_id, entry.goes_to)]

    def moment(event: dict[str, Any]) -> datetime:
        at: datetime = event["at"]
        made_entries = event["event"] == "end" and event["state"] == "COMMIT"
        return min(at, *visible_at) if made_entries and visible_at else at

    return sorted(events, key=moment)


def _entered(entry: Entry, names: dict[int, str]) -> dict[str, Any]:
    """The event of an entry: what it means depends on whose topic it is in."""
    topic = names[entry.topic_id]
    place = {"queue_id": entry.queue_id, "queue_offset": entry.queue_offset}
    if entry.goes_to is not None:
        return _event("delayed", entry.entered_at, _delay(names[entry.goes_to], entry.level, entry.deliver_at))
    if topic.startswith(RETRY_PREFIX):
        attempt = {"group": topic.removeprefix(RETRY_PREFIX), "delivery_attempt": entry.reconsume_times + 1}
        return _event("retry", entry.entered_at, attempt | place)
    if topic.startswith(DEAD_LETTER_PREFIX):
        given_up = {"group": topic.removeprefix(DEAD_LETTER_PREFIX), "reconsume_times": entry.reconsume_times}
        return _event("dead_letter", entry.entered_at, given_up | place)
    return _event("visible", entry.entered_at, {"topic": topic} | place)


def _event(name: str, at: datetime, told: dict[str, Any]) -> dict[str, Any]:
    return {"event": name, "at": at, **told}


def _delay(topic: str, level: int | None, deliver_at: datetime | None) -> dict[str, Any]:
    told = {"topic": topic, "deliver_at": deliver_at}
    return told if level is None else {**told, "delay_level": level}


def _waiting(wait: scheduling_trace.Wait, names: dict[int, str]) -> dict[str, Any]:
    return _delay(names[wait.topic_id], wait.level, wait.deliver_at)
