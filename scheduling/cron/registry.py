"""The registry of schedules: made, changed, listed, fired by hand and taken away by operators."""

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
from store.errors import MessageIllegal, Refusal
from store.messages import Message, rules
from store.messages.ids import new_id
from store.messages.times import read as read_time
from store.naming import topics

MAX_SCHEDULES = 10_000
# Of its message, as JSON.
MAX_BYTES = 64 * 1024
MAX_CRON = 200
NAME = re.compile(r"[a-zA-Z0-9_-]{1,100}")
SKIP, LAST, ALL = MISSED = ("skip", "last", "all")
# The properties that each message of a schedule has besides its own.
NAME_PROPERTY, TIME_PROPERTY = OWN_PROPERTIES = ("schedule", "scheduled_at")
MESSAGE = "message"
BODIES = ("body", "body_base64")
# What the times are computed of.
TIMING = ("cron", "time_zone", "begins_at", "ends_at", "paused")


class ScheduledMessage(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The message of a schedule: what is sent at each of its times."""

    topic: str
    body: str | None = None
    body_base64: str | None = None
    tags: str | None = None
    keys: list[str] | None = None
    properties: dict[str, str] | None = None
    sharding_key: str | None = None


def parse(given: object) -> dict[str, Any]:
    """The message as a firing keeps it. Raises the refusal that a send of it would have, or MessageIllegal."""
    try:
        found = msgspec.convert(given, ScheduledMessage)
    except msgspec.ValidationError as problem:
        raise MessageIllegal(f"message cannot be sent: {problem}.") from problem
    kept: dict[str, Any] = msgspec.to_builtins(found)
    size = len(msgspec.json.encode(kept))
    if size > MAX_BYTES:
        raise MessageIllegal(f"message has {size:,} bytes as JSON: {MAX_BYTES:,} is the limit of a schedule's.")
    topics.validate_sending(found.topic)
    own = [name for name in OWN_PROPERTIES if name in (found.properties or {})]
    if own:
        raise MessageIllegal(f"property {own[0]} is the schedule's own: name yours otherwise.")
    rules.checked(message_of(kept, "x" * 100, datetime.max.replace(tzinfo=UTC)))
    return kept


def message_of(kept: Mapping[str, Any], name: str, fire_at: datetime, **more: Any) -> Message:
    """The message of one firing, from what a row keeps."""
    at = fire_at.isoformat().replace("+00:00", "Z")
    own = {NAME_PROPERTY: name, TIME_PROPERTY: at}
    return msgspec.convert({**kept, "properties": {**kept.get("properties", {}), **own}, **more}, Message)


FIELDS = fields.of(
    Schedule,
    fields.Json(
        MESSAGE,
        "Message",
        help="What is sent: topic, body or body_base64, and tags, keys, properties, sharding_key as of any message. No "
        "answer shows the body, and one that is left out of a change stays as it is",
        needed=True,
        parse=parse,
        schema=ScheduledMessage,
    ),
    fields.Text(
        "cron",
        "Cron",
        help="Minute, hour, day of month, month, day of week; a field of seconds may stand before them",
        needed=True,
        most=MAX_CRON,
    ),
    fields.Text("time_zone", "Time zone", help="Whose clock the times are of, such as Europe/Berlin", most=60),
    fields.Time("begins_at", "Not before", help="No time before it counts", unset="from now on"),
    fields.Time("ends_at", "Not after", help="No time after it counts", unset="for ever"),
    fields.Choice(
        "missed",
        "Missed times",
        help="What is sent of times that were decided a minute late: nothing, the last, or the last 100",
        component="MissedTimes",
        choices=MISSED,
    ),
    fields.Switch("paused", "Paused", help="Whether its times pass without a message"),
)


# Those that the console changes: a body would stand in its actions.
TIMES = tuple(one for one in FIELDS if one.name != MESSAGE)


class ScheduleNotExist(Refusal):
    """No schedule has this name."""

    code = "not_found"


def page(after: str, count: int, matching: str = "") -> Sequence[Schedule]:
    """Schedules by name: the first `count` behind `after` whose names contain `matching`, in any case."""
    return list(Schedule.objects.filter(name__gt=after, name__icontains=matching).order_by("name")[:count])


def named(name: str) -> Schedule | None:
    """The schedule of this name, or None."""
    return Schedule.objects.filter(name=name).first()


def find(name: str) -> Schedule:
    """The schedule of this name. Raises ScheduleNotExist, or MessageIllegal for what is no name."""
    validate_name(name)
    found = named(name)
    if found is None:
        raise ScheduleNotExist(f"There is no schedule {name}: PUT /v1/schedules/{name} makes it.")
    return found


def validate_name(name: str) -> None:
    """Raises MessageIllegal for what is no name."""
    if not NAME.fullmatch(name):
        raise MessageIllegal(f"{name[:60]!r}: the name of a schedule has 1 to 100 of the characters a-z A-Z 0-9 _ -.")


def put(name: str, changes: Mapping[str, Any]) -> tuple[Schedule, bool]:
    """Makes the schedule, or changes what is given of it; the flag is whether it was made.

    A change of its times counts for those that no firing is decided for; the others stand as they are. Raises
    MessageIllegal, as where a new one has no message or no cron, and what a send of its message is refused with.
    """
    validate_name(name)
    changes = {column: _read(column, value) for column, value in changes.items()}
    if MESSAGE in changes:
        changes |= _message(changes[MESSAGE], named(name))
    try:
        return _put(name, changes)
    except IntegrityError:
        # Another request has made it since it was looked up.
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
    """The columns of a message that is given; its body is that of the row, where none is given."""
    has_body = not isinstance(given, Mapping) or any(name in given for name in BODIES)
    message = parse(given if has_body or row is None else {**given, **row.body})
    return {"body": {name: message.pop(name) for name in BODIES if name in message}, MESSAGE: message}


def _read(column: str, value: Any) -> Any:
    # The parameters of an action are JSON.
    return read_time(value) if column in ("begins_at", "ends_at") and isinstance(value, str) else value


def _find_next(row: Schedule) -> None:
    """Sets the next time. Raises MessageIllegal where none is left of one that is not paused."""
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
        raise MessageIllegal(
            f"cron {row.cron!r} has no time{end} that is still to come: change it, or delete the schedule."
        )
    row.next_at = found


def next_times(row: Schedule, count: int) -> list[datetime]:
    """The next times, in UTC; none of a paused schedule, or once the last is past."""
    if row.paused or row.next_at is None:
        return []
    found = times.after(row.cron, row.time_zone, row.next_at - times.MICROSECOND)
    try:
        return list(islice(takewhile(lambda at: row.ends_at is None or at <= row.ends_at, found), count))
    except ZoneInfoNotFoundError:
        # It was taken out of tzdata since: the schedule is shown all the same.
        return []


def fire(row: Schedule) -> Firing:
    """Decides a firing now, besides the times of the schedule; paused ones, too. It is sent within seconds."""
    Schedule.objects.filter(id=row.id).update(fired=F("fired") + 1)
    return Firing.objects.create(
        id=new_id(), schedule_id=row.id, name=row.name, message=row.message | row.body, fire_at=stats.now()
    )


def remove(row: Schedule) -> None:
    """Takes a schedule away. What is decided already is sent."""
    row.delete()
