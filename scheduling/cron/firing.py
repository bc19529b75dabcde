"""Fires schedules: decides what is due, each time once, and sends what is decided until it is stored.

The statement that moves a schedule to its next time inserts its firings. A firing is deleted once its message is stored
under the firing's id: a process that dies in between leaves it to the next, whose message is stored no second time.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import structlog

from access import key_limits
from access.callers import Caller
from scheduling.cron import registry, times
from scheduling.sending.send import Send
from store.commit import writer
from store.db import connections
from store.db.statements import Statement
from store.errors import MessageIdReused, OutcomeUnknown, RateLimited, Refusal, SystemBusy

logger = structlog.stdlib.get_logger(__name__)


class Due(NamedTuple):
    """A schedule whose next time has come, or comes soon, and the database's time."""

    id: int
    name: str
    seed: uuid.UUID
    cron: str
    time_zone: str
    ends_at: datetime | None
    missed: str
    version: int
    next_at: datetime
    now: datetime


class Decided(NamedTuple):
    """A firing that was inserted."""

    id: uuid.UUID


class Taken(NamedTuple):
    """A firing that this process is to send."""

    id: uuid.UUID
    schedule_id: int
    name: str
    message: dict[str, Any]
    fire_at: datetime
    now: datetime


FIND_DUE_SCHEDULES = Statement(__file__, "find_due_schedules", Due)
DECIDE_FIRINGS = Statement(__file__, "decide_firings", Decided)
TAKE_FIRINGS = Statement(__file__, "take_firings", Taken)
SETTLE_FIRINGS = Statement(__file__, "settle_firings")

# Longer than two ticks of beat: a message is stored with its time before that has come, and released at it.
AHEAD_SECONDS = 4.5
# A time that is decided so much later was missed.
MISSED = timedelta(seconds=60)
MAX_MISSED = 100
MAX_SCHEDULES = 500
# Of one statement, whose messages are up to 64 KiB each.
MAX_DECIDED = 1000
MAX_TAKEN = 100
# Firings of one schedule that wait, as while its topic takes no messages. The times behind them are not decided until
# some are sent, and are missed then, as `missed` says.
MAX_WAITING = 1000
# Of a process that took them and did not delete them.
TAKEN_SECONDS = 10.0
# A run of a process ends by then; the next tick goes on.
RUN_SECONDS = 20.0


async def run(late_seconds: float = 0.0) -> None:
    """Decides and sends what is due; with `late_seconds` only what has been due for so long, in place of another.

    Raises SystemBusy while the control is away.
    """
    over_at = asyncio.get_running_loop().time() + RUN_SECONDS
    due_seconds = -late_seconds or AHEAD_SECONDS
    while await _decide(due_seconds) and asyncio.get_running_loop().time() < over_at:
        pass
    while await _send(late_seconds) and asyncio.get_running_loop().time() < over_at:
        pass


async def _decide(due_seconds: float) -> bool:
    """Decides what is due for schedules, MAX_SCHEDULES at most; whether there may be more."""
    found = await connections.read_control(
        FIND_DUE_SCHEDULES, {"due_seconds": due_seconds, "max_rows": MAX_SCHEDULES, "max_waiting": MAX_WAITING}
    )
    # An expression with a time in fifty years takes a moment.
    decisions = await asyncio.to_thread(_decisions, found)
    decided = await connections.read_control(DECIDE_FIRINGS, _columns(decisions)) if decisions else ()
    # Without a firing the next look may find the same schedules: another session may hold their rows.
    return bool(decided) and (len(found) == MAX_SCHEDULES or len(decisions) < len(found))


def _decisions(found: Iterable[Due]) -> list["Decision"]:
    """Decisions on the first schedules, up to MAX_DECIDED firings; one that cannot be computed holds up no other."""
    decisions: list[Decision] = []
    count = 0
    for due in found:
        if count >= MAX_DECIDED:
            break
        try:
            decisions.append(decide(due))
        except Exception:
            # As where its time zone was taken out of tzdata: the console says for how long its time has been due.
            logger.exception("the times of a schedule cannot be computed", schedule=due.name)
            continue
        count += len(decisions[-1].times)
    return decisions


class Decision(NamedTuple):
    """The times of a schedule that are fired now, and the one that comes behind them; None: it was the last."""

    due: Due
    times: Sequence[datetime]
    next_at: datetime | None


def decide(due: Due) -> Decision:
    """What is fired of a schedule: its times up to AHEAD_SECONDS from now, and of missed ones what its policy says."""
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
    """The id of a schedule's message of one time."""
    return uuid.uuid5(seed, at.isoformat())


def _columns(decisions: Iterable[Decision]) -> Mapping[str, Sequence[object]]:
    """Decisions as the statement takes them: schedules and firings, a list for each column."""
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
    """Sends firings that no other process sends, MAX_TAKEN at most; whether there may be more."""
    limits = {"late_seconds": late_seconds, "taken_seconds": TAKEN_SECONDS, "max_rows": MAX_TAKEN}
    taken = await connections.read_control(TAKE_FIRINGS, limits)
    if not taken:
        return False
    outcomes = list(zip(taken, await asyncio.gather(*(_outcome(firing) for firing in taken)), strict=True))
    noted = {firing.schedule_id: outcome.failure for firing, outcome in outcomes if outcome.is_noted}
    # Of a schedule whose messages are refused or wait, those that are stored do not hide why.
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
    # Where some are left for later, the rest most likely would be, too.
    return len(taken) == MAX_TAKEN and len(settled) == len(taken)


class Outcome(NamedTuple):
    """What became of a firing: stored, refused for good, or it waits and is sent again; and why it is not stored."""

    waits: bool = False
    failure: str | None = None
    # By a limit, which lets some through each second.
    is_limited: bool = False

    @property
    def is_noted(self) -> bool:
        """Whether its schedule says so: not what a database that is away for a moment has it wait for."""
        return not self.waits or self.failure is not None

    @property
    def is_refused(self) -> bool:
        """Whether its message will never be stored."""
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
        # It was stored before, and its schedule was changed since.
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
        # A fault of ours: the firing stays, and holds up no other.
        logger.exception("a message of a schedule could not be sent", schedule=firing.name)
        return Outcome(waits=True)
    return Outcome()
