"""Delays: how long a message waits before it becomes visible."""

from datetime import UTC, datetime, timedelta

import msgspec
from django.conf import settings

from store.db import connections
from store.db.health import READ_CLOCK
from store.errors import DelayIllegal
from store.messages import Message
from store.naming import topics

# Tolerance for steps of the clock by NTP: a smaller step must not release a message early.
CLOCK_STEP_SECONDS = 1
# A microsecond, the resolution of PostgreSQL. A shorter delay counts as no delay.
SHORTEST_SECONDS = 1e-6


class Delay(msgspec.Struct, frozen=True, omit_defaults=True):
    """A delay: a delay level from 1 on, a number of seconds, or a time. Without any of the three: now."""

    level: int | None = None
    seconds: float | None = None
    at: datetime | None = None


def of_message(message: Message) -> Delay | None:
    """The delay with which a message was sent; a level above the highest counts as the highest, as in RocketMQ."""
    if message.delay_level:
        return Delay(level=known_level(message.delay_level))
    if message.delay_seconds:
        return Delay(seconds=message.delay_seconds)
    if message.deliver_at is not None:
        return Delay(at=message.deliver_at)
    return None


def validate(delay: Delay | None, now: datetime) -> None:
    """Validates a delay, only when its message is accepted: a maximum that is lowered later has no effect.

    Raises DelayIllegal when the delay ends more than MAX_TIMER_DELAY_SECONDS after `now`.
    """
    longest = settings.MAX_TIMER_DELAY_SECONDS
    if delay is None or delay.level is not None:
        return
    _validate_seconds(delay)
    if delay.at is not None and delay.at > now + timedelta(seconds=longest):
        raise DelayIllegal(f"deliver_at {delay.at.isoformat()} is too far ahead: the maximum is {longest} seconds.")


def _validate_seconds(delay: Delay) -> None:
    """The checks of `validate` that need no clock."""
    longest = settings.MAX_TIMER_DELAY_SECONDS
    if delay.seconds is not None and delay.seconds > longest:
        raise DelayIllegal(f"delay_seconds {delay.seconds} is above the maximum of {longest}.")


async def require_possible(message: Message) -> None:
    """Validates a delay by the database's clock, before a topic is created for the message. Raises DelayIllegal."""
    delay = of_message(message)
    if delay is None or delay.level is not None or topics.known_for_sending(message.topic) is not None:
        return
    _validate_seconds(delay)
    if delay.at is not None:
        [now] = await connections.read_control(READ_CLOCK)
        validate(delay, now)


def are_possible(seconds: float) -> bool:
    """Whether a timer may wait for this many seconds: at least a microsecond, at most the maximum."""
    return SHORTEST_SECONDS <= seconds <= settings.MAX_TIMER_DELAY_SECONDS


def due_at(delay: Delay | None, now: datetime) -> datetime:
    """The due time of a delay that counts from `now`, the database's time."""
    if delay is None:
        return now
    if delay.level is not None:
        return now + timedelta(seconds=seconds_of_level(delay.level))
    return delay.at if delay.at is not None else now + timedelta(seconds=delay.seconds or 0)


def known_level(level: int) -> int:
    """The delay level with this number. A number above the highest level gives the highest level."""
    return min(level, len(settings.DELAY_LEVELS))


def seconds_of_level(level: int) -> int:
    """The delay of a level in seconds; for a number above the highest level, the delay of the highest level."""
    return settings.DELAY_LEVELS[known_level(level) - 1]


def queue_of(level: int) -> int:
    """The queue of the schedule topic in which a level's messages wait, as in RocketMQ."""
    return level - 1


def level_of(queue_id: int) -> int:
    """The level of a queue of the schedule topic."""
    return queue_id + 1


def milliseconds_of(due: datetime) -> int:
    """The tags code of an entry in a level's queue: its due time in milliseconds, as in RocketMQ.

    Rounded up: a message may be late by a part of a millisecond, never early.
    """
    return -int(-due.timestamp() * 1000 // 1)


def time_of(due_ms: int) -> datetime:
    """The due time of an entry in a level's queue, from its tags code."""
    return datetime.fromtimestamp(due_ms / 1000, UTC)


def corrected(due: datetime, level: int, now: datetime) -> datetime:
    """The due time of an entry of a level's queue; `now` when the due time is further ahead than the level's delay.

    The due time is too far ahead when the level was shortened or a clock was set back (RocketMQ's
    `correctDeliverTimestamp`). Messages of a level that was removed from the settings keep their time. The caller reads
    `now` after the entry, because an entry stored after `now` could have a due time that seems too far ahead.
    """
    if level > len(settings.DELAY_LEVELS):
        return due
    latest = now + timedelta(seconds=seconds_of_level(level) + CLOCK_STEP_SECONDS)
    return due if due <= latest else now
