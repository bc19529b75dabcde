"""Fires schedules: decides firings for due times, each once, and sends each firing's message until it is stored.

The statement that moves a schedule to its next time inserts the firings. A firing is deleted when its message, which
has the firing's id, is stored. If a process dies before the delete, another process sends the message again, and the
broker recognizes the id and does not store the message twice.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
import structlog

from access import key_limits
from access.callers import Caller
from scheduling.cron import registry, times
from scheduling.cron.rows import Due, Taken
from scheduling.sending.send import Send
from store.commit import writer
from store.db import connections
from store.db.statements import Statement
from store.errors import MessageIdReused, OutcomeUnknown, RateLimited, Refusal, SystemBusy

logger = structlog.stdlib.get_logger(__name__)


FIND_DUE_SCHEDULES = Statement(__file__, "find_due_schedules", Due)
DECIDE_FIRINGS = Statement(__file__, "decide_firings", one=uuid.UUID)
TAKE_FIRINGS = Statement(__file__, "take_firings", Taken)
SETTLE_FIRINGS = Statement(__file__, "settle_firings")

# Times up to this far ahead are decided. It exceeds two ticks of beat, so a message is stored before its time, with a
# delay, and released exactly at its time.
AHEAD_SECONDS = 4.5
# A time that is decided later than this after it has passed counts as missed.
MISSED = timedelta(seconds=60)
MAX_MISSED = 100
MAX_SCHEDULES = 500
# The most firings that one statement inserts, with messages of up to 64 KiB each.
MAX_DECIDED = 1000
MAX_TAKEN = 100
# The most firings of one schedule that may wait, for instance while its topic accepts no messages. Later times are
# decided when some firings are sent; times that are then too late count as missed, and the schedule's `missed` applies.
MAX_WAITING = 1000
# If a process took a firing and has not deleted it after this time, another process may take it.
TAKEN_SECONDS = 10.0
# After this time a run begins no further batch; the run of the next tick continues.
RUN_SECONDS = 20.0


async def run(late_seconds: float = 0.0) -> None:
    """Decides and sends due firings. With `late_seconds` only firings that no other process has handled for this time.

    Raises SystemBusy while the control is away.
    """
    over_at = asyncio.get_running_loop().time() + RUN_SECONDS
    due_seconds = -late_seconds or AHEAD_SECONDS
    while await _decide(due_seconds) and asyncio.get_running_loop().time() < over_at:
        pass
    while await _send(late_seconds) and asyncio.get_running_loop().time() < over_at:
        pass


async def _decide(due_seconds: float) -> bool:
    """Decides the due times of at most MAX_SCHEDULES schedules; returns whether there may be more."""
    found = await connections.read_control(
        FIND_DUE_SCHEDULES, {"due_seconds": due_seconds, "max_rows": MAX_SCHEDULES, "max_waiting": MAX_WAITING}
    )
    # The times are computed in a thread, because an expression whose next time is fifty years ahead takes long.
    decisions = await asyncio.to_thread(_decisions, found)
    decided = await connections.read_control(DECIDE_FIRINGS, _columns(decisions)) if decisions else ()
    # If no firing was inserted, the next run might find the same schedules again, because their rows are locked by
    # another session.
    return bool(decided) and (len(found) == MAX_SCHEDULES or len(decisions) < len(found))


def _decisions(found: Iterable[Due]) -> list["Decision"]:
    """Decisions for the first schedules, up to MAX_DECIDED firings; skips schedules whose times cannot be computed."""
    decisions: list[Decision] = []
    count = 0
    for due in found:
        if count >= MAX_DECIDED:
            break
        try:
            decisions.append(decide(due))
        except Exception:
            # For instance, the schedule's time zone was removed from tzdata. The console shows how long its time has
            # been due.
            logger.exception("the times of a schedule cannot be computed", schedule=due.name)
            continue
        count += len(decisions[-1].times)
    return decisions


class Decision(NamedTuple):
    """The times of a schedule that are fired now, and the schedule's next time; None: there is no further time."""

    due: Due
    times: Sequence[datetime]
    next_at: datetime | None


def decide(due: Due) -> Decision:
    """The decision for a schedule: its times up to AHEAD_SECONDS from now, and missed times according to `missed`."""
    cron, zone = due.cron, due.time_zone
    end = due.now + timedelta(seconds=AHEAD_SECONDS)
    last = end if due.ends_at is None else min(end, due.ends_at)
    missed_before = due.now - MISSED
    fired: list[datetime] = []
    if due.next_at < missed_before and due.missed != registry.SKIP:
        count = MAX_MISSED if due.missed == registry.ALL else 1
        fired = times.latest(cron, zone, due.next_at, min(missed_before, last + times.MICROSECOND), count)
    fired += times.between(cron, zone, max(due.next_at, missed_before), last)
    following = next(times.after(cron, zone, end), None)
    is_over = following is None or (due.ends_at is not None and following > due.ends_at)
    return Decision(due, fired, None if is_over else following)


def id_of(seed: uuid.UUID, at: datetime) -> uuid.UUID:
    """The id of a schedule's message for one time: always the same id for the same seed and time."""
    return uuid.uuid5(seed, at.isoformat())


def _columns(decisions: Iterable[Decision]) -> Mapping[str, Sequence[object]]:
    """The decisions as parameters of the statement: schedules and firings, a list for each column."""
    decisions = list(decisions)
    firings = [(one.due, at) for one in decisions for at in one.times]
    return {
        "schedule_id": [one.due.id for one in decisions],
        "version": [one.due.version for one in decisions],
        "was_at": [one.due.next_at for one in decisions],
        "next_at": [one.next_at for one in decisions],
        "firing_id": [id_of(due.seed, at) for due, at in firings],
        "firing_of": [due.id for due, _ in firings],
        "fire_at": [at for _, at in firings],
    }


async def _send(late_seconds: float) -> bool:
    """Sends at most MAX_TAKEN firings that no other process has taken; returns whether there may be more."""
    limits = {"late_seconds": late_seconds, "taken_seconds": TAKEN_SECONDS, "max_rows": MAX_TAKEN}
    taken = await connections.read_control(TAKE_FIRINGS, limits)
    if not taken:
        return False
    outcomes = list(zip(taken, await asyncio.gather(*(_outcome(firing) for firing in taken)), strict=True))
    noted = {firing.schedule_id: outcome.failure for firing, outcome in outcomes if outcome.is_noted}
    # If one message of a schedule fails, the failure is kept, even when another message of the schedule was stored.
    noted |= {firing.schedule_id: outcome.failure for firing, outcome in outcomes if outcome.failure}
    refused = Counter(firing.schedule_id for firing, outcome in outcomes if outcome.is_refused)
    settled = [firing.id for firing, outcome in outcomes if not outcome.waits]
    limited = [firing.id for firing, outcome in outcomes if outcome.is_limited]
    if settled or noted or limited:
        columns = {
            "id": settled,
            "schedule_id": list(noted),
            "failure": list(noted.values()),
            "refused": [refused[schedule_id] for schedule_id in noted],
            "again": limited,
        }
        await connections.read_control(SETTLE_FIRINGS, columns)
    # When some firings have to wait, further ones would probably have to wait, too.
    return len(taken) == MAX_TAKEN and len(settled) == len(taken)


class Outcome(NamedTuple):
    """The outcome of a firing: stored, refused for good, or waiting to be sent again; and why it is not stored."""

    waits: bool = False
    failure: str | None = None
    # Whether the reason was a limit of messages per second, so that a later attempt may succeed.
    is_limited: bool = False

    @property
    def is_noted(self) -> bool:
        """Whether the schedule notes this outcome. A short wait, as for a database that is away, is not noted."""
        return not self.waits or self.failure is not None

    @property
    def is_refused(self) -> bool:
        """Whether the message of the firing will never be stored."""
        return not self.waits and self.failure is not None


async def _outcome(firing: Taken) -> Outcome:
    """Sends the message of a firing."""
    waits = {"deliver_at": firing.fire_at} if firing.fire_at > firing.now else {}
    topic = firing.message["topic"]
    try:
        allowance = await key_limits.of_topic(topic)
        caller = Caller(f"schedule {firing.name}", (f"produce:{topic}",), allowance=allowance)
        message = registry.message_of(firing.message, firing.name, firing.fire_at, message_id=firing.id, **waits)
        await writer.run(Send(message, None, caller, len(msgspec.json.encode(firing.message))))
    except MessageIdReused:
        # The message is already stored, and the schedule was changed since then.
        return Outcome()
    except Refusal as refusal:
        if refusal.is_for_now:
            logger.warning("a message of a schedule has to wait", schedule=firing.name, reason=refusal.detail)
        else:
            logger.warning("a message of a schedule was refused", schedule=firing.name, reason=refusal.detail)
        is_brief = (
            isinstance(refusal, SystemBusy | OutcomeUnknown | RateLimited) and firing.now - firing.fire_at < MISSED
        )
        reason = f"{refusal.code}: {refusal.detail}{' The message waits.' if refusal.is_for_now else ''}"[:500]
        return Outcome(refusal.is_for_now, None if is_brief else reason, isinstance(refusal, RateLimited))
    except Exception:
        # A fault in the broker itself: the firing stays in the table, and does not delay other firings.
        logger.exception("a message of a schedule could not be sent", schedule=firing.name)
        return Outcome(waits=True)
    return Outcome()
