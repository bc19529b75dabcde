"""The registry of schedules: created, changed, listed, fired by hand and deleted by operators."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import F

from scheduling.cron import times
from scheduling.cron.models import Firing, Schedule
from store import stats
from store.db import fields
from store.errors import MessageIllegal, Refusal, wrong_fields
from store.messages import Message, rules
from store.messages.ids import new_id
from store.messages.times import read as read_time
from store.naming import topics

MAX_SCHEDULES = 10_000
# The most bytes of a schedule's message as JSON.
MAX_BYTES = 64 * 1024
MAX_CRON = 200
NAME = re.compile(r"[a-zA-Z0-9_-]{1,100}")
SKIP, LAST, ALL = MISSED = ("skip", "last", "all")
# The properties that the broker adds to each message of a schedule.
NAME_PROPERTY, TIME_PROPERTY = OWN_PROPERTIES = ("schedule", "scheduled_at")
MESSAGE = "message"
BODIES = ("body", "body_base64")
# The columns from which the times are computed.
TIMING = ("cron", "time_zone", "begins_at", "ends_at", "paused")


class ScheduledMessage(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The message that a schedule sends at each of its times."""

    topic: str
    body: str | None = None
    body_base64: str | None = None
    tags: str | None = None
    keys: list[str] | None = None
    properties: dict[str, str] | None = None
    sharding_key: str | None = None


def parse(given: object) -> dict[str, Any]:
    """The message in the form of a firing's row. Raises MessageIllegal, or the refusal of a send of this message."""
    try:
        found = msgspec.convert(given, ScheduledMessage)
    except msgspec.ValidationError as problem:
        raise MessageIllegal(f"message cannot be sent: {wrong_fields.sentence(problem, ScheduledMessage)}") from problem
    kept: dict[str, Any] = msgspec.to_builtins(found)
    size = len(msgspec.json.encode(kept))
    if size > MAX_BYTES:
        raise MessageIllegal(
            f"message has {size:,} bytes as JSON: the limit for the message of a schedule is {MAX_BYTES:,}."
        )
    topics.validate_sending(found.topic)
    own = [name for name in OWN_PROPERTIES if name in (found.properties or {})]
    if own:
        raise MessageIllegal(f"The property {own[0]} is set by the schedule itself: choose another name.")
    rules.checked(message_of(kept, "x" * 100, datetime.max.replace(tzinfo=UTC)))
    return kept


def message_of(kept: Mapping[str, Any], name: str, fire_at: datetime, **more: Any) -> Message:
    """The message to send for one firing, from the message in the firing's row."""
    at = fire_at.isoformat().replace("+00:00", "Z")
    own = {NAME_PROPERTY: name, TIME_PROPERTY: at}
    return msgspec.convert({**kept, "properties": {**kept.get("properties", {}), **own}, **more}, Message)


FIELDS = fields.of(
    Schedule,
    fields.Json(
        MESSAGE,
        "Message",
        help="The message to send: topic, body or body_base64, and tags, keys, properties, sharding_key as in a send. "
        "No answer shows the body, and a change without a body keeps the old body",
        needed=True,
        parse=parse,
        schema=ScheduledMessage,
    ),
    fields.Text(
        "cron",
        "Cron",
        help="Minute, hour, day of month, month, day of week; a sixth field in front is the seconds",
        needed=True,
        most=MAX_CRON,
    ),
    fields.Text("time_zone", "Time zone", help="The time zone of the times, such as Europe/Berlin", most=60),
    fields.Time("begins_at", "Not before", help="Earlier times are left out", unset="from now on"),
    fields.Time("ends_at", "Not after", help="Later times are left out", unset="for ever"),
    fields.Choice(
        "missed",
        "Missed times",
        help="Which times are fired that the broker decides more than a minute late: none, the last, or the last 100",
        component="MissedTimes",
        choices=MISSED,
    ),
    fields.Switch("paused", "Paused", help="Whether the schedule sends no messages at its times"),
)


# The fields that an action of the console changes: not the message, because the row of the action would keep the body.
TIMES = tuple(one for one in FIELDS if one.name != MESSAGE)


class ScheduleNotExist(Refusal):
    """There is no schedule with this name."""

    code = "not_found"


def page(after: str, count: int, matching: str = "") -> Sequence[Schedule]:
    """Schedules by name: the first `count` after `after` whose names contain `matching`, in any case."""
    return list(Schedule.objects.filter(name__gt=after, name__icontains=matching).order_by("name")[:count])


def named(name: str) -> Schedule | None:
    """The schedule of this name, or None."""
    return Schedule.objects.filter(name=name).first()


def find(name: str) -> Schedule:
    """The schedule of this name. Raises ScheduleNotExist, or MessageIllegal for an invalid name."""
    validate_name(name)
    found = named(name)
    if found is None:
        raise ScheduleNotExist(f"There is no schedule {name}: PUT /v1/schedules/{name} makes it.")
    return found


def validate_name(name: str) -> None:
    """Raises MessageIllegal for an invalid name."""
    if not NAME.fullmatch(name):
        raise MessageIllegal(
            f"{name[:60]!r} is not a valid schedule name: give 1 to 100 of the characters a-z A-Z 0-9 _ -."
        )


def put(name: str, changes: Mapping[str, Any]) -> tuple[Schedule, bool]:
    """Creates the schedule, or changes the given columns; returns it, and whether it was created.

    A change of the times affects times for which no firing is decided yet; decided firings are still sent. Raises
    MessageIllegal, for instance for a new schedule without message or cron, and the refusal of a send of its message.
    """
    validate_name(name)
    changes = {column: _read(column, value) for column, value in changes.items()}
    if MESSAGE in changes:
        changes |= _message(changes[MESSAGE], named(name))
    try:
        return _put(name, changes)
    except IntegrityError:
        # Another request has created the schedule since `_put` looked for it.
        return _put(name, changes)


def _put(name: str, changes: Mapping[str, Any]) -> tuple[Schedule, bool]:
    with transaction.atomic():
        row = Schedule.objects.select_for_update().filter(name=name).first()
        is_new = row is None
        if row is None:
            if not changes.get("message") or not changes.get("cron"):
                raise MessageIllegal("A new schedule needs message and cron.")
            if Schedule.objects.count() >= MAX_SCHEDULES:
                raise MessageIllegal(f"There are {MAX_SCHEDULES:,} schedules, which is the limit: delete one first.")
            row = Schedule(name=name)
        moves = is_new or any(getattr(row, column) != changes.get(column, getattr(row, column)) for column in TIMING)
        for column, value in changes.items():
            setattr(row, column, value)
        if moves:
            _find_next(row)
            row.version += 1
        row.failure = row.failed_at = None
        row.save()
        row.refresh_from_db()
    return row, is_new


def _message(given: Any, row: Schedule | None) -> dict[str, Any]:
    """The columns of a given message; a message without a body keeps the body of the row."""
    has_body = not isinstance(given, Mapping) or any(name in given for name in BODIES)
    message = parse(given if has_body or row is None else {**given, **row.body})
    return {"body": {name: message.pop(name) for name in BODIES if name in message}, MESSAGE: message}


def _read(column: str, value: Any) -> Any:
    # A console action gives times as text, because its parameters are JSON.
    return read_time(value) if column in ("begins_at", "ends_at") and isinstance(value, str) else value


def _find_next(row: Schedule) -> None:
    """Sets the schedule's next time. Raises MessageIllegal when a schedule that is not paused has no further time."""
    times.validate(row.cron, row.time_zone)
    now = stats.now()
    behind = max([now, *([] if row.last_at is None else [row.last_at])])
    if row.begins_at is not None and row.begins_at > behind:
        behind = row.begins_at - times.MICROSECOND
    found = next(times.after(row.cron, row.time_zone, behind), None)
    if found is not None and row.ends_at is not None and found > row.ends_at:
        found = None
    if found is None and not row.paused:
        end = "" if row.ends_at is None else f" up to {row.ends_at.isoformat()}"
        raise MessageIllegal(f"cron {row.cron!r} has no time{end} in the future: change cron, or delete the schedule.")
    row.next_at = found


def next_times(row: Schedule, count: int) -> list[datetime]:
    """The next `count` times, in UTC; no times for a paused schedule, or after the last time."""
    if row.paused or row.next_at is None:
        return []
    found = times.after(row.cron, row.time_zone, row.next_at - times.MICROSECOND)
    try:
        return list(islice(takewhile(lambda at: row.ends_at is None or at <= row.ends_at, found), count))
    except ZoneInfoNotFoundError:
        # The time zone was removed from tzdata; the schedule is still shown.
        return []


def fire(row: Schedule) -> Firing:
    """Decides a firing now, in addition to the schedule's times, also of a paused schedule. Sent within seconds."""
    Schedule.objects.filter(id=row.id).update(fired=F("fired") + 1)
    return Firing.objects.create(
        id=new_id(), schedule_id=row.id, name=row.name, message=row.message | row.body, fire_at=stats.now()
    )


def remove(row: Schedule) -> None:
    """Deletes a schedule. Firings that are already decided are still sent."""
    row.delete()
