"""Trace: the state of one message in each consumer group, as far as rows are kept.

An ack leaves no row, and neither does a filter that passes over a message or a reset that skips the message. The ledger
then only shows that the group's progress passed the entry, and when. A retry or a dead letter proves a delivery that
was not acked.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from delivery.retries import nacks
from delivery.rows import NackRow
from scheduling.trace import Entry, Wait, Way
from store.db import connections
from store.db.statements import Statement
from store.messages import Time
from store.naming.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX, group_of


class GroupAtEntry(NamedTuple):
    """A consumer group at an entry of a message: whether its progress passed the entry, and its receipt, if any.

    `passed_at` is None when the move that passed the entry is not kept any more.
    """

    group_name: str
    takes_turns: bool
    topic_id: int
    queue_id: int
    queue_offset: int
    passed: bool
    passed_at: datetime | None
    state: str | None
    received_at: datetime | None
    expires_at: datetime | None
    reconsume_times: int | None


class RedrivenLetter(NamedTuple):
    """When a dead letter of a group was sent again."""

    group_name: str
    queue_offset: int
    redriven_at: datetime


FIND_REDRIVES = Statement(__file__, "find_redrives", RedrivenLetter)
FIND_STANDINGS = Statement(__file__, "find_standings", GroupAtEntry)

# The most groups in a trace, the first by name; each group costs about thirty probes by index.
MAX_GROUPS = 500
# The most entries, without retries, whose groups a trace shows: the latest entries. Only redrives add such entries.
MAX_SHARED_ENTRIES = 8

State = Literal["WAITING", "IN_FLIGHT", "RETRYING", "PARKED", "DEAD_LETTER", "REDRIVEN", "PASSED"]
# The events of a group and a message in a trace.
GroupEventName = Literal["received", "passed", "nack", "redriven"]
RECEIPT_STATES: dict[str, State] = {"flight": "IN_FLIGHT", "held": "RETRYING", "parked": "PARKED"}


class TraceGroup(msgspec.Struct):
    """The state of a message in a consumer group. An ack leaves no row.

    WAITING: not handed out yet. IN_FLIGHT: handed out, and hidden until `expires_at`. RETRYING: not acked, and offered
    again at `next_attempt_at`. PARKED: behind another message of its sharding key. DEAD_LETTER: given up; REDRIVEN:
    sent again since. PASSED: acked, passed over by a filter, or skipped by a reset; `passed_at` is null when the time
    is not kept any more.
    """

    group: str
    state: State
    delivery_attempt: int
    received_at: Time | UnsetType = UNSET
    expires_at: Time | UnsetType = UNSET
    next_attempt_at: Time | UnsetType = UNSET
    passed_at: Time | UnsetType | None = UNSET


class Step(NamedTuple):
    """A step in the history of a message in one consumer group.

    `offered` and `retried`: an entry that the group reads, with the group's state at the entry. `failed` and `dead`:
    the retry or the dead letter that followed a delivery without an ack.
    """

    at: datetime
    kind: Literal["offered", "retried", "failed", "dead"]
    entry: Entry
    group_at_entry: GroupAtEntry | None = None


@dataclass(slots=True)
class Standing:
    """The history of one message in one group: its steps by time, and delays that are not over."""

    group: str
    steps: list[Step] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    # When each dead letter was redriven. The key is the queue offset of the dead letter.
    redriven: dict[int, datetime] = field(default_factory=dict)
    nacks: list[NackRow] = field(default_factory=list)


async def of(message_id: uuid.UUID, way: Way, topics: Mapping[int, str]) -> list[Standing]:
    """The groups that a message was offered to, or that have retries or dead letters of the message, by name.

    `topics` has the names of all topics of `way`, by id.
    """
    found: dict[str, Standing] = {}
    for row, entry in await _offered(way.entries, topics):
        standing = found.setdefault(row.group_name, Standing(row.group_name))
        is_retry = group_of(topics[entry.topic_id], RETRY_PREFIX) is not None
        # The count of a dead letter or a discarded message is not a count of deliveries to this group.
        offered = entry if is_retry else replace(entry, reconsume_times=0)
        standing.steps.append(Step(entry.entered_at, "retried" if is_retry else "offered", offered, row))
    for entry in way.entries:
        if entry.goes_to is not None and (group := group_of(topics[entry.goes_to], RETRY_PREFIX)):
            found.setdefault(group, Standing(group)).steps.append(Step(entry.entered_at, "failed", entry))
        elif group := group_of(topics[entry.topic_id], DEAD_LETTER_PREFIX):
            found.setdefault(group, Standing(group)).steps.append(Step(entry.entered_at, "dead", entry))
    for wait in way.waits:
        if group := group_of(topics[wait.topic_id], RETRY_PREFIX):
            found.setdefault(group, Standing(group)).waits.append(wait)
    await _follow(message_id, found)
    for standing in found.values():
        standing.steps.sort(key=lambda step: step.at)
    return [found[group] for group in sorted(found)]


async def _follow(message_id: uuid.UUID, found: Mapping[str, Standing]) -> None:
    """Adds to the histories when dead letters were redriven, and the reasons of nacks."""
    for letter in await _redrives(found.values()):
        found[letter.group_name].redriven[letter.queue_offset] = letter.redriven_at
    for nack in await nacks.of_message(message_id):
        if nack.group_name in found:
            found[nack.group_name].nacks.append(nack)


async def _offered(entries: Sequence[Entry], topics: Mapping[int, str]) -> list[tuple[GroupAtEntry, Entry]]:
    """The groups at each visible entry; a retry is offered to its own group only."""
    visible = [entry for entry in entries if entry.level is None]
    retries = [entry for entry in visible if group_of(topics[entry.topic_id], RETRY_PREFIX)]
    shared = [entry for entry in visible if not group_of(topics[entry.topic_id], RETRY_PREFIX)][-MAX_SHARED_ENTRIES:]
    offered = [*shared, *retries]
    if not offered:
        return []
    rows = await connections.read(
        FIND_STANDINGS,
        {
            "topic_id": [entry.topic_id for entry in offered],
            "queue_id": [entry.queue_id for entry in offered],
            "queue_offset": [entry.queue_offset for entry in offered],
            "group_name": [group_of(topics[entry.topic_id], RETRY_PREFIX) for entry in offered],
            "max_groups": MAX_GROUPS,
        },
    )
    by_offset = {(entry.topic_id, entry.queue_id, entry.queue_offset): entry for entry in offered}
    return [(row, by_offset[row.topic_id, row.queue_id, row.queue_offset]) for row in rows]


async def _redrives(standings: Iterable[Standing]) -> Sequence[RedrivenLetter]:
    letters = [(one.group, step.entry.queue_offset) for one in standings for step in one.steps if step.kind == "dead"]
    if not letters:
        return ()
    groups, offsets = zip(*letters, strict=True)
    return await connections.read(FIND_REDRIVES, {"group_name": list(groups), "queue_offset": list(offsets)})


def shown(standing: Standing) -> TraceGroup:
    """The state to show for a message in a group: from a delay or a receipt, or else from its last step."""
    if standing.waits:
        wait = standing.waits[0]
        return TraceGroup(standing.group, "RETRYING", wait.reconsume_times + 1, next_attempt_at=wait.deliver_at)
    at_entries = [step.group_at_entry for step in standing.steps if step.group_at_entry is not None]
    with_receipt = [row for row in at_entries if row.state is not None]
    if with_receipt:
        return _with_receipt(with_receipt[-1])
    last = standing.steps[-1]
    attempt = last.entry.reconsume_times + 1
    if last.kind == "dead":
        is_redriven = last.entry.queue_offset in standing.redriven
        return TraceGroup(standing.group, "REDRIVEN" if is_redriven else "DEAD_LETTER", attempt)
    for step in standing.steps:
        if step.group_at_entry is not None and not step.group_at_entry.passed:
            return TraceGroup(standing.group, "WAITING", step.entry.reconsume_times + 1)
    passed_at = None if last.group_at_entry is None else last.group_at_entry.passed_at
    return TraceGroup(standing.group, "PASSED", attempt, passed_at=passed_at)


def _with_receipt(row: GroupAtEntry) -> TraceGroup:
    assert row.state is not None
    assert row.reconsume_times is not None
    found = TraceGroup(row.group_name, RECEIPT_STATES[row.state], row.reconsume_times + 1)
    if row.received_at is not None and row.expires_at is not None:
        if found.state == "IN_FLIGHT":
            found.received_at, found.expires_at = row.received_at, row.expires_at
        elif found.state == "RETRYING":
            found.next_attempt_at = row.expires_at
    return found


def events(standing: Standing) -> list[dict[str, Any]]:
    """A group's events in a message's trace: its progress passed the message, nacks with reasons, and redrives.

    The first event is `received` if a row proves the delivery, else `passed`; without a kept time it is missing.
    """
    found: list[dict[str, Any]] = [
        {"event": "redriven", "at": at, "group": standing.group, "queue_offset": offset}
        for offset, at in standing.redriven.items()
    ]
    found += [
        {
            "event": "nack",
            "at": nack.nacked_at,
            "group": standing.group,
            "delivery_attempt": nack.reconsume_times + 1,
            "reason": nack.reason,
        }
        for nack in standing.nacks
    ]
    for step, following in pairwise([*standing.steps, None]):
        assert step is not None
        row = step.group_at_entry
        if row is None or not row.passed:
            continue
        if row.state == "flight" and row.received_at is not None:
            found.append(_event("received", row.received_at, standing, step, row.reconsume_times or 0))
        elif row.state is None and row.passed_at is not None:
            # An ordered group may have parked the message then, or a fair group read it ahead, and handed it out later.
            is_proven = not row.takes_turns and _was_not_acked(standing, following)
            name: GroupEventName = "received" if is_proven else "passed"
            found.append(_event(name, row.passed_at, standing, step, step.entry.reconsume_times))
    return found


def _was_not_acked(standing: Standing, following: Step | None) -> bool:
    """Whether the following step, or a delay, proves that a delivery was not acked."""
    return bool(standing.waits) if following is None else following.kind != "offered"


def _event(
    name: GroupEventName, at: datetime, standing: Standing, step: Step, reconsume_times: int
) -> dict[str, object]:
    return {
        "event": name,
        # The group's transaction may have begun shortly before the entry became visible.
        "at": max(at, step.at),
        "group": standing.group,
        "queue_id": step.entry.queue_id,
        "queue_offset": step.entry.queue_offset,
        "delivery_attempt": reconsume_times + 1,
    }
