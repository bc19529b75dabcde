"""Standings: how each consumer group stands with one message, told from what is kept.

An ack leaves no row, and neither does a filter that passes over a message or a reset that skips it: all that is known
then is that the group's position has passed the entry, and when. Whatever comes of a delivery that was not acked (a
retry, a dead letter) proves that it was one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from delivery.rows import RedriveRow, StandingRow
from scheduling.trace import Entry, Wait, Way
from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement
from store.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX

FIND_REDRIVES = Statement(__file__, "find_redrives", RedriveRow)
FIND_STANDINGS = Statement(__file__, "find_standings", StandingRow)

# Groups that are told of, by name; each costs some thirty probes by index.
MAX_GROUPS = 500
# Entries whose readers are looked for, beside those of retries: the latest. Only a redrive makes a second one.
MAX_SHARED_ENTRIES = 8

RECEIPT_STATES = {"flight": "IN_FLIGHT", "held": "RETRYING", "parked": "PARKED"}


class Step(NamedTuple):
    """One thing that happened between a group and a message.

    `offered` and `retried`: an entry that the group reads, with how it stands there. `failed` and `dead`: what followed
    a delivery that was not acked.
    """

    at: datetime
    kind: str
    entry: Entry
    standing: Row | None = None


@dataclass(slots=True)
class Standing:
    """One group with one message."""

    group: str
    steps: list[Step] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    redriven: dict[int, datetime] = field(default_factory=dict)


async def of(way: Way, topics: Mapping[int, str]) -> list[Standing]:
    """The groups that a message on its way was offered to, or that have retries or dead letters of it, by name.

    `topics` are the names of all topics on the way.
    """
    found: dict[str, Standing] = {}
    for row, entry in await _offered(way.entries, topics):
        standing = found.setdefault(row.group_name, Standing(row.group_name))
        kind = "retried" if _group(topics[entry.topic_id], RETRY_PREFIX) else "offered"
        standing.steps.append(Step(entry.entered_at, kind, entry, row))
    for entry in way.entries:
        if entry.goes_to is not None and (group := _group(topics[entry.goes_to], RETRY_PREFIX)):
            found.setdefault(group, Standing(group)).steps.append(Step(entry.entered_at, "failed", entry))
        elif group := _group(topics[entry.topic_id], DEAD_LETTER_PREFIX):
            found.setdefault(group, Standing(group)).steps.append(Step(entry.entered_at, "dead", entry))
    for wait in way.waits:
        if group := _group(topics[wait.topic_id], RETRY_PREFIX):
            found.setdefault(group, Standing(group)).waits.append(wait)
    for row in await _redrives(found.values()):
        found[row.group_name].redriven[row.queue_offset] = row.redriven_at
    for standing in found.values():
        standing.steps.sort(key=lambda step: step.at)
    return [found[group] for group in sorted(found)]


def _group(topic: str, prefix: str) -> str | None:
    return topic.removeprefix(prefix) if topic.startswith(prefix) else None


async def _offered(entries: Sequence[Entry], topics: Mapping[int, str]) -> list[tuple[Row, Entry]]:
    """How groups stand with the visible entries; a retry is offered to its own group only."""
    visible = [entry for entry in entries if entry.level is None]
    retries = [entry for entry in visible if _group(topics[entry.topic_id], RETRY_PREFIX)]
    shared = [entry for entry in visible if not _group(topics[entry.topic_id], RETRY_PREFIX)][-MAX_SHARED_ENTRIES:]
    asked = [*shared, *retries]
    if not asked:
        return []
    rows = await connections.read(
        FIND_STANDINGS,
        {
            "topic_id": [entry.topic_id for entry in asked],
            "queue_id": [entry.queue_id for entry in asked],
            "queue_offset": [entry.queue_offset for entry in asked],
            "group_name": [_group(topics[entry.topic_id], RETRY_PREFIX) for entry in asked],
            "max_groups": MAX_GROUPS,
        },
    )
    by_place = {(entry.topic_id, entry.queue_id, entry.queue_offset): entry for entry in asked}
    return [(row, by_place[row.topic_id, row.queue_id, row.queue_offset]) for row in rows]


async def _redrives(standings: Any) -> Sequence[Row]:
    letters = [(one.group, step.entry.queue_offset) for one in standings for step in one.steps if step.kind == "dead"]
    if not letters:
        return ()
    groups, offsets = zip(*letters, strict=True)
    return await connections.read(FIND_REDRIVES, {"group_name": list(groups), "queue_offset": list(offsets)})


def shown(standing: Standing) -> dict[str, Any]:
    """A standing as the API tells it.

    WAITING: not read yet. IN_FLIGHT: handed out, and hidden until `expires_at`. RETRYING: not acked, and offered again
    at `next_attempt_at`. PARKED: behind a failing message of its sharding key. DEAD_LETTER: given up; REDRIVEN: sent
    again since. PASSED: acked, passed over by a filter, or skipped by a reset.
    """
    if standing.waits:
        wait = standing.waits[0]
        return _state(standing, "RETRYING", wait.reconsume_times, next_attempt_at=wait.deliver_at)
    held = [step.standing for step in standing.steps if step.standing is not None and step.standing.state is not None]
    if held:
        return _held(standing, held[-1])
    last = standing.steps[-1]
    if last.kind == "dead":
        redriven_at = standing.redriven.get(last.entry.queue_offset)
        state = "DEAD_LETTER" if redriven_at is None else "REDRIVEN"
        return _state(standing, state, last.entry.reconsume_times)
    for step in standing.steps:
        if step.standing is not None and not step.standing.passed:
            return _state(standing, "WAITING", step.entry.reconsume_times)
    passed_at = None if last.standing is None else last.standing.passed_at
    return _state(standing, "PASSED", last.entry.reconsume_times, passed_at=passed_at)


def _held(standing: Standing, receipt: Row) -> dict[str, Any]:
    state = RECEIPT_STATES[receipt.state]
    times: dict[str, Any] = {}
    if state == "IN_FLIGHT":
        times = {"received_at": receipt.received_at, "expires_at": receipt.expires_at}
    elif state == "RETRYING":
        times = {"next_attempt_at": receipt.expires_at}
    return _state(standing, state, receipt.reconsume_times, **times)


def _state(standing: Standing, state: str, reconsume_times: int, **times: datetime | None) -> dict[str, Any]:
    return {"group": standing.group, "state": state, "delivery_attempt": reconsume_times + 1, **times}


def events(standing: Standing) -> list[dict[str, Any]]:
    """When the group's position passed the message, and when its dead letters were redriven.

    `received` where something proves the delivery, else `passed`; none where the time is not kept any more.
    """
    told = [
        {"event": "redriven", "at": at, "group": standing.group, "queue_offset": offset}
        for offset, at in standing.redriven.items()
    ]
    for step, following in pairwise([*standing.steps, None]):
        assert step is not None
        row = step.standing
        if row is None or not row.passed:
            continue
        if row.state == "flight":
            told.append(_event("received", row.received_at, standing, step, row.reconsume_times))
        elif row.state is None and row.passed_at is not None:
            # An ordered group may have parked it then, and handed it out later.
            proven = not row.ordered and _not_acked(standing, following)
            kind = "received" if proven else "passed"
            told.append(_event(kind, row.passed_at, standing, step, step.entry.reconsume_times))
    return told


def _not_acked(standing: Standing, following: Step | None) -> bool:
    """Whether what followed comes of a delivery that was not acked."""
    return bool(standing.waits) if following is None else following.kind != "offered"


def _event(kind: str, at: datetime, standing: Standing, step: Step, reconsume_times: int) -> dict[str, Any]:
    return {
        "event": kind,
        # Whoever received it may have begun a moment before it became visible.
        "at": max(at, step.at),
        "group": standing.group,
        "queue_id": step.entry.queue_id,
        "queue_offset": step.entry.queue_offset,
        "delivery_attempt": reconsume_times + 1,
    }
